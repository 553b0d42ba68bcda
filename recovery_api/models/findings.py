"""The listing: findings of an audit or a plan copied from its evidence, so that a page can show, filter and turn them.

The evidence (Parquet) is the authority and stays whole; these rows are for looking, bounded, and go when newer ones come.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from recovery_api.models.audits import Audit
from recovery_api.models.intents import Intent
from recovery_api.models.plans import Plan


class Finding(models.Model):
    """One finding, numbered from 0 in the order of lane and coordinate. `evidence_class`: of a lost one, its class."""

    audit = models.ForeignKey(Audit, null=True, on_delete=models.PROTECT, related_name="listing")
    plan = models.ForeignKey(Plan, null=True, on_delete=models.PROTECT, related_name="listing")
    number = models.BigIntegerField()
    finding = models.CharField(max_length=20)
    cause = models.CharField(max_length=40, blank=True, default="")
    evidence_class = models.CharField(max_length=40, blank=True, default="")
    lane = models.TextField()
    position = models.BigIntegerField()
    ordinal = models.BigIntegerField()
    entry = models.BigIntegerField(null=True)
    accepted_count = models.BigIntegerField(null=True)
    is_acknowledged = models.BooleanField(default=False)
    history_digest = models.BinaryField(null=True)
    accepted_digest = models.BinaryField(null=True)

    class Meta:
        ordering = ["number"]
        constraints = [
            models.CheckConstraint(
                condition=Q(audit__isnull=False, plan__isnull=True) | Q(audit__isnull=True, plan__isnull=False),
                name="a_finding_is_of_an_audit_or_of_a_plan",
            ),
            models.UniqueConstraint(
                fields=["audit", "number"], condition=Q(audit__isnull=False), name="findings_of_an_audit_are_numbered"
            ),
            models.UniqueConstraint(
                fields=["plan", "number"], condition=Q(plan__isnull=False), name="findings_of_a_plan_are_numbered"
            ),
        ]
        indexes = [
            models.Index(
                fields=["audit", "lane", "position", "ordinal"],
                condition=Q(audit__isnull=False),
                name="findings_of_an_audit_by_place",
            ),
            models.Index(
                fields=["plan", "lane", "position", "ordinal"],
                condition=Q(plan__isnull=False),
                name="findings_of_a_plan_by_place",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.finding} at {self.lane}:{self.position}:{self.ordinal}"


class EventContent(models.Model):
    """The content an EVENT_READ intent brought, as the source printed it; or, of a CONNECTION_TEST, how the contents of its
    sample rows begin, as JSON. Kept for a short while, then purged.

    `body` null: the source gave none. `sink_body`: how what the sink holds begins, as JSON; null: it gave none.
    """

    intent = models.OneToOneField(Intent, primary_key=True, on_delete=models.PROTECT, related_name="content")
    body = models.BinaryField(null=True)
    sink_body = models.BinaryField(null=True)
    kept_until = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["kept_until"], name="contents_by_their_end")]

    def __str__(self) -> str:
        return f"content of {self.intent_id}"
