"""The ledger's rows: each lane as it was last seen, and every obligation or acceptance that was not settled.

What they mean, and what an audit adds to them, is recovery_api.domain.ledger's.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from recovery_api.domain.ledger.sums import EMPTY
from recovery_api.domain.ledger.words import KEPT_AS_ROWS, SettledBy
from recovery_api.models.audits import Audit
from recovery_api.models.pipelines import Pipeline

ITEM_WORDS = [word.value for word in KEPT_AS_ROWS]
SETTLED_WORDS = [word.value for word in SettledBy]


class LedgerLane(models.Model):
    """One lane in one epoch, as `domain.ledger.lanes.LaneKnown` has it.

    `audit`: the last one whose knowledge is in it, `read_at` when the record's snapshot of that was opened: knowledge is
    ordered by it. Coordinates are rows (domain.frontiers), counts and sums text. `decided_*`: that nothing is owed below
    a coordinate, who said so, when and why. `void_since`: the server was restored, or its ground fell; what is here says
    nothing any more, and the lane's items stay.
    """

    pipeline = models.ForeignKey(Pipeline, on_delete=models.PROTECT, related_name="ledger_lanes")
    lane = models.TextField()
    epoch = models.CharField(max_length=64)
    audit = models.ForeignKey(Audit, on_delete=models.PROTECT, related_name="+")
    read_at = models.DateTimeField()
    frontier = models.JSONField(null=True, blank=True)
    lowest = models.JSONField(null=True, blank=True)
    earliest = models.JSONField(null=True, blank=True)
    head = models.JSONField(null=True, blank=True)
    admitted_below = models.BigIntegerField(null=True, blank=True)
    prefix = models.JSONField(default=dict)
    unseen_above = models.JSONField(null=True, blank=True)
    unseen_below = models.JSONField(null=True, blank=True)
    evidence = models.TextField(blank=True, default="")
    unjustifiable_count = models.BigIntegerField(default=0)
    is_whole = models.BooleanField(default=True)
    givens = models.JSONField(default=list)
    decided_below = models.JSONField(null=True, blank=True)
    decided_by = models.CharField(max_length=200, blank=True, default="")
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_because = models.TextField(blank=True, default="")
    void_since = models.DateTimeField(null=True, blank=True)
    void_says = models.TextField(blank=True, default="")

    class Meta:
        ordering = ["pipeline", "lane", "-read_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["pipeline", "lane", "epoch"],
                condition=Q(void_since__isnull=True),
                name="a_lane_has_one_ledger_an_epoch",
            ),
            models.CheckConstraint(
                condition=Q(decided_below__isnull=True, decided_at__isnull=True)
                | (
                    Q(decided_below__isnull=False, decided_at__isnull=False)
                    & ~Q(decided_by="")
                    & ~Q(decided_because="")
                ),
                name="a_decision_about_a_ledger_has_a_person_a_time_and_a_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"ledger of lane {self.lane} of pipeline {self.pipeline_id}"


class LedgerItem(models.Model):
    """One obligation or acceptance that was not settled when it was last seen, or that was since (`settled_at`).

    `digest`: of the obligation for a lost one, of the acceptance for the others; empty where none was read.
    `other_digest`: of the other end's side. `entry`: in committed order, or the record's. `copies`: how often it was
    accepted. `is_content_gone`: the source does not hold its row any more, so nothing can be sent. `first_seen_at`,
    `last_seen_at`: when the record's snapshot of the audit was opened that saw it first and last. Key and event id where
    the reading brought them. `shown_key`: the key as it was looked up for people; no scope is judged by it, since it may be
    of another mapping.
    """

    pipeline = models.ForeignKey(Pipeline, on_delete=models.PROTECT, related_name="ledger_items")
    lane = models.TextField()
    position = models.BigIntegerField()
    ordinal = models.BigIntegerField(default=0)
    word = models.CharField(max_length=20, choices=[(word, word) for word in ITEM_WORDS])
    cause = models.CharField(max_length=40, blank=True, default="")
    digest = models.BinaryField(default=b"")
    other_digest = models.BinaryField(null=True, blank=True)
    entry = models.BigIntegerField(null=True, blank=True)
    copies = models.BigIntegerField(null=True, blank=True)
    event_id = models.TextField(null=True, blank=True)
    key = models.TextField(null=True, blank=True)
    shown_key = models.TextField(null=True, blank=True)
    committed_at = models.DateTimeField(null=True, blank=True)
    epoch = models.CharField(max_length=64)
    is_acknowledged = models.BooleanField(default=False)
    is_content_gone = models.BooleanField(default=False)
    first_audit = models.ForeignKey(Audit, on_delete=models.PROTECT, related_name="+")
    first_seen_at = models.DateTimeField()
    last_audit = models.ForeignKey(Audit, on_delete=models.PROTECT, related_name="+")
    last_seen_at = models.DateTimeField()
    settled_by = models.CharField(
        max_length=20, blank=True, default="", choices=[(word, word) for word in SETTLED_WORDS]
    )
    settled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["pipeline", "lane", "position", "ordinal"]
        constraints = [
            models.UniqueConstraint(
                fields=["pipeline", "lane", "position", "ordinal", "word", "digest"], name="an_item_is_remembered_once"
            ),
            models.CheckConstraint(condition=Q(word__in=ITEM_WORDS), name="a_ledger_item_word_is_known"),
            models.CheckConstraint(
                condition=Q(settled_by="", settled_at__isnull=True)
                | Q(settled_by__in=SETTLED_WORDS, settled_at__isnull=False),
                name="what_is_settled_has_a_word_and_a_time",
            ),
        ]
        indexes = [
            models.Index(
                fields=["pipeline", "lane", "position", "ordinal"],
                condition=Q(settled_at__isnull=True),
                name="ledger_items_that_are_open",
            ),
            models.Index(
                fields=["pipeline", "-settled_at"], condition=Q(settled_at__isnull=False), name="ledger_items_settled"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.word} at {self.lane}:{self.position}:{self.ordinal}"


class SettledItems(models.Model):
    """The settled items of a lane that went by age, added up: one row a word and by what they were settled.

    `digests`: the sum of their digests (domain.ledger.sums). A settled item is committed and accepted, or neither any more, so
    it adds nothing to what was committed less what was accepted: the open items alone balance that.
    """

    pipeline = models.ForeignKey(Pipeline, on_delete=models.PROTECT, related_name="settled_items")
    lane = models.TextField()
    word = models.CharField(max_length=20, choices=[(word, word) for word in ITEM_WORDS])
    settled_by = models.CharField(max_length=20, choices=[(word, word) for word in SETTLED_WORDS])
    count = models.BigIntegerField(default=0)
    digests = models.TextField(default=EMPTY)
    first_seen_at = models.DateTimeField()
    last_settled_at = models.DateTimeField()

    class Meta:
        ordering = ["pipeline", "lane", "word", "settled_by"]
        constraints = [
            models.UniqueConstraint(
                fields=["pipeline", "lane", "word", "settled_by"], name="settled_items_are_added_up_once"
            ),
            models.CheckConstraint(
                condition=Q(word__in=ITEM_WORDS) & Q(settled_by__in=SETTLED_WORDS),
                name="settled_items_have_known_words",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.count} {self.word} of lane {self.lane}, {self.settled_by}"
