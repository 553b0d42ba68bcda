"""An audit: the verdict of one frontier, with its evidence, committed together."""

from __future__ import annotations

import functools
import operator
import uuid

from django.db import models
from django.db.models import Q

from recovery_api.domain import outcomes
from recovery_api.domain.identity import BY_IDENTITY
from recovery_api.domain.outcomes import OUTCOMES, Status
from recovery_api.models.intents import Intent
from recovery_api.models.pipelines import Pipeline


class AuditStatus(models.TextChoices):
    """The word a person sees: domain.outcomes says what each means. Ended by a crash, an audit leaves no row: there is
    no such thing as half a verdict."""

    EXACTLY_ONCE = Status.EXACTLY_ONCE.value
    EXACTLY_ONCE_GIVEN = Status.EXACTLY_ONCE_GIVEN.value
    NOTHING_OWED_OF_KEPT = Status.NOTHING_OWED_OF_KEPT.value
    COMPLETE_BY_IDENTITY = Status.COMPLETE_BY_IDENTITY.value
    OWED = Status.OWED.value
    HAZARD = Status.HAZARD.value
    ACKNOWLEDGED = Status.ACKNOWLEDGED.value
    UNKNOWN = Status.UNKNOWN.value


CLEAN = tuple(AuditStatus(status) for status in reversed(outcomes.CLEAN))


def _exits_as_it_says() -> Q:
    """Each status with its exit code, from the table of outcomes."""
    pairs = [Q(status=status, exit_code=OUTCOMES[status].exit_code) for status in AuditStatus.values]
    return functools.reduce(operator.or_, pairs)


class Audit(models.Model):
    """`lanes`: lane -> frontier, safe frontier and its ground, counts, verdict. `verified` is what the next
    incremental audit starts from; `findings` the first page of the evidence at `evidence_uri`. `groups`: all findings by
    cause, each with its contiguous runs of coordinates (the first of them); `listed_count`: how many rows of the listing
    (models.findings) are kept. `evidence_gone_at`: since when its parts are gone (domain.retention). `is_full`: asked for in full, by name: what both ends held became the new base of what was
    seen (docs/ledger.md). `givens`: what an exactly once at f rests on besides what was read. `record_read_at`:
    when the record's snapshot was opened, by the clock of this database; readings are ordered by it. `is_standing`: no
    later reading that reaches as far has taken its place (domain.statuses). `is_scheduled`: its pipeline's schedule asked
    for it, so it stands at a frontier that was pinned one window before (domain.schedules). `evidence_until`: when what it
    rests on may be gone, fixed when it was recorded; null: no such moment is known. `evidence_says`: why.
    `ends_seen`: what source, record and delivery showed of themselves then (domain.headroom.seen).
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    pipeline = models.ForeignKey(Pipeline, on_delete=models.PROTECT, related_name="audits")
    intent = models.ForeignKey(Intent, null=True, blank=True, on_delete=models.PROTECT, related_name="audits")
    recovery = models.ForeignKey("Recovery", null=True, blank=True, on_delete=models.PROTECT, related_name="audits")
    status = models.CharField(max_length=20, choices=AuditStatus.choices)
    exit_code = models.SmallIntegerField()
    says = models.TextField(blank=True, default="")
    is_full = models.BooleanField()
    is_scheduled = models.BooleanField(default=False)
    frontier = models.JSONField(default=dict)
    lanes = models.JSONField(default=dict)
    lost_count = models.BigIntegerField(default=0)
    premature_count = models.BigIntegerField(default=0)
    duplicate_count = models.BigIntegerField(default=0)
    acknowledged_count = models.BigIntegerField(default=0)
    obligation_count = models.BigIntegerField(default=0)
    accepted_count = models.BigIntegerField(default=0)
    givens = models.JSONField(default=list)
    weaknesses = models.JSONField(default=list)
    record_read_at = models.DateTimeField()
    is_standing = models.BooleanField(default=True)
    source_snapshot = models.TextField(blank=True, default="")
    sink_snapshot = models.TextField(blank=True, default="")
    matching = models.CharField(max_length=30, blank=True, default="")
    evidence_uri = models.TextField(blank=True, default="")
    evidence_digest = models.TextField(blank=True, default="")
    evidence_rows = models.BigIntegerField(default=0)
    evidence_gone_at = models.DateTimeField(null=True, blank=True)
    findings = models.JSONField(default=list)
    groups = models.JSONField(default=list)
    listed_count = models.BigIntegerField(default=0)
    verified = models.JSONField(null=True, blank=True)
    evidence_until = models.DateTimeField(null=True, blank=True)
    evidence_says = models.TextField(blank=True, default="")
    ends_seen = models.JSONField(default=dict)
    void_since = models.DateTimeField(null=True, blank=True)
    void_says = models.TextField(blank=True, default="")
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField()

    class Meta:
        ordering = ["-finished_at"]
        indexes = [
            models.Index(fields=["pipeline", "-finished_at"], name="audits_of_a_pipeline"),
            models.Index(fields=["-finished_at", "-id"], name="audits_by_age"),
            models.Index(
                fields=["pipeline"], condition=Q(is_standing=True, void_since__isnull=True), name="audits_that_stand"
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(status__in=AuditStatus.values), name="an_audit_status_is_known"),
            models.CheckConstraint(condition=Q(exit_code__range=(0, 4)), name="an_audit_exit_code_is_known"),
            models.CheckConstraint(condition=_exits_as_it_says(), name="an_audit_exits_as_its_status_says"),
            models.CheckConstraint(
                condition=Q(lost_count__gte=0, premature_count__gte=0, duplicate_count__gte=0),
                name="an_audit_counts_from_zero",
            ),
            models.CheckConstraint(
                condition=~Q(status__in=CLEAN) | Q(lost_count=0, premature_count=0, duplicate_count=0),
                name="exactly_once_has_nothing_lost_and_no_hazard",
            ),
            models.CheckConstraint(
                condition=~Q(status=AuditStatus.UNKNOWN) | Q(exit_code=3), name="unknown_is_never_clean"
            ),
            models.CheckConstraint(
                condition=(~Q(status=AuditStatus.EXACTLY_ONCE) | Q(givens=[]))
                & (~Q(status=AuditStatus.EXACTLY_ONCE_GIVEN) | ~Q(givens=[])),
                name="only_what_was_given_nothing_is_exactly_once",
            ),
            models.CheckConstraint(
                condition=Q(finished_at__gte=models.F("started_at")), name="an_audit_ends_after_it_starts"
            ),
            models.UniqueConstraint(
                fields=["intent"], condition=Q(recovery__isnull=True), name="an_audit_intent_records_one_audit"
            ),
        ]

    @property
    def suspected_count(self) -> int:
        """Events above the frontier that were not accepted yet: they may be on their way. No status rests on it."""
        return sum(int(row.get("above_frontier_owed") or 0) for row in self.lanes.values())

    @property
    def is_by_identity(self) -> bool:
        """The record knows only message ids: contents and premature entries were not judged, and none were counted."""
        return self.matching.startswith(BY_IDENTITY)

    def __str__(self) -> str:
        return f"audit {self.id}"
