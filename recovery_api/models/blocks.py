"""What audits judged, in closed ranges, and the reading that the next audit goes on from (domain.ledger.following)."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from recovery_api.models.pipelines import Pipeline


class LedgerReading(models.Model):
    """The newest reading of a pipeline that an audit may go on from. One a pipeline; its blocks are of it.

    `epoch`: of what it is (domain.ledger.epochs). `snapshot`: what the record showed. `read_at`: when the record's
    snapshot was opened: of two readings the later one stays. `lanes`: lane -> frontier, lowest, floor, acknowledged,
    incarnation, above. `increment`: `since` and `entries` of the last one that was not empty.
    """

    pipeline = models.OneToOneField(Pipeline, on_delete=models.PROTECT, related_name="ledger_reading")
    epoch = models.CharField(max_length=64)
    snapshot = models.TextField()
    evidence_uri = models.TextField()
    read_at = models.DateTimeField()
    lanes = models.JSONField(default=dict)
    increment = models.JSONField(null=True, blank=True)

    def __str__(self) -> str:
        return f"reading of pipeline {self.pipeline_id}"


class LedgerBlock(models.Model):
    """One closed range of a lane, from `low` (null: from the beginning) up to but not including `high`.

    `counts`: the kernel's. `committed`, `accepted`: fingerprints of both ends there, whole numbers as text. `derived_at`:
    when both ends were last read there.
    """

    pipeline = models.ForeignKey(Pipeline, on_delete=models.PROTECT, related_name="ledger_blocks")
    lane = models.TextField()
    low_position = models.BigIntegerField(null=True, blank=True)
    low_ordinal = models.BigIntegerField(null=True, blank=True)
    high_position = models.BigIntegerField()
    high_ordinal = models.BigIntegerField()
    counts = models.JSONField()
    committed = models.JSONField()
    accepted = models.JSONField()
    derived_at = models.DateTimeField()

    class Meta:
        ordering = ["pipeline", "lane", "high_position", "high_ordinal"]
        constraints = [
            models.UniqueConstraint(
                fields=["pipeline", "lane", "high_position", "high_ordinal"], name="a_block_ends_where_no_other_does"
            ),
            models.CheckConstraint(
                condition=Q(low_position__isnull=True, low_ordinal__isnull=True)
                | Q(low_position__lt=F("high_position"), low_ordinal__isnull=False)
                | Q(low_position=F("high_position"), low_ordinal__lt=F("high_ordinal")),
                name="a_block_begins_before_it_ends",
            ),
        ]

    def __str__(self) -> str:
        return f"block of lane {self.lane} below {self.high_position}"
