"""A plan: what a recovery would send, on which evidence, under which conditions. Inert until approved and applied."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q

from recovery_api.models.audits import Audit
from recovery_api.models.pipelines import Pipeline


class PlanState(models.TextChoices):
    """Where a plan stands. None of these writes at the sink."""

    DRAFT = "draft"
    """Asked for. The worker that takes its intent moves it on; a crash leaves it here and the intent queued."""
    COMPUTING = "computing"
    """A worker reads both ends. A crash leaves it here; the next taker starts over."""
    READY = "ready"
    """Computed, every condition shown. An approver moves it on by its digest."""
    NOTHING_OWED = "nothing_owed"
    """Computed: nothing is owed at this frontier. Final, and a success."""
    REFUSED = "refused"
    """A condition fails or the evidence could not be read; `conditions` say which. Final; plan again."""
    APPROVED = "approved"
    """Someone approved this digest. Applying moves it on; age or a newer plan lapses it."""
    LAPSED = "lapsed"
    """Superseded by a newer plan, or its approval grew too old. Final; plan again."""
    APPLIED = "applied"
    """A recovery was started from it, in the same transaction. Final; the recovery tells the rest."""


WAITING_STATES = (PlanState.READY, PlanState.APPROVED)


class Plan(models.Model):
    """`frontier` as asked, then as pinned. `conditions`: [{name, holds, says, remedy}], `holds` null is unknown.
    `batch`: evidence class -> count as text. `pins`: snapshots, floor, capability: what the digest covers.
    `listed_count`: how many rows of the listing (models.findings) are kept. `evidence_gone_at`: since when its parts are gone.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    pipeline = models.ForeignKey(Pipeline, on_delete=models.PROTECT, related_name="plans")
    audit = models.ForeignKey(Audit, null=True, blank=True, on_delete=models.PROTECT, related_name="plans")
    state = models.CharField(max_length=20, choices=PlanState.choices, default=PlanState.DRAFT)
    says = models.TextField(blank=True, default="")
    frontier = models.JSONField(null=True, blank=True)
    digest = models.TextField(blank=True, default="")
    conditions = models.JSONField(default=list)
    batch = models.JSONField(default=dict)
    batch_count = models.BigIntegerField(null=True, blank=True)
    samples = models.JSONField(default=list)
    pins = models.JSONField(default=dict)
    evidence_uri = models.TextField(blank=True, default="")
    evidence_digest = models.TextField(blank=True, default="")
    evidence_gone_at = models.DateTimeField(null=True, blank=True)
    stranded_count = models.BigIntegerField(null=True, blank=True)
    listed_count = models.BigIntegerField(default=0)
    author = models.CharField(max_length=200)
    created_at = models.DateTimeField()
    computed_at = models.DateTimeField(null=True, blank=True)
    approved_by = models.CharField(max_length=200, blank=True, default="")
    approved_at = models.DateTimeField(null=True, blank=True)
    approved_digest = models.TextField(blank=True, default="")

    class Meta:
        ordering = ["-created_at"]
        indexes = [
            models.Index(fields=["pipeline", "-created_at"], name="plans_of_a_pipeline"),
            models.Index(fields=["-created_at", "-id"], name="plans_by_age"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=PlanState.values), name="a_plan_state_is_known"),
            models.CheckConstraint(
                condition=~Q(state__in=[*WAITING_STATES, PlanState.APPLIED])
                | (~Q(digest="") & Q(frontier__isnull=False, computed_at__isnull=False, batch_count__gt=0)),
                name="a_ready_plan_has_a_digest_a_frontier_and_a_batch",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=[PlanState.APPROVED, PlanState.APPLIED])
                | (~Q(approved_by="") & Q(approved_at__isnull=False, approved_digest=models.F("digest"))),
                name="an_approval_is_bound_to_the_digest",
            ),
            models.UniqueConstraint(
                fields=["pipeline"],
                condition=Q(state__in=WAITING_STATES),
                name="a_pipeline_has_one_plan_to_apply",
            ),
        ]

    def __str__(self) -> str:
        return f"plan {self.id}"
