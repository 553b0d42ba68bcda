"""An acknowledged omission: a coordinate somebody took out of the obligation on purpose (a dead letter).

The law: more than one is never acknowledged unseen. What would be is written down first, coordinate by coordinate, and
who confirms it confirms those and no others.
"""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q

from recovery_api.domain.omissions import Way, Word
from recovery_api.domain.words import choices, words
from recovery_api.models.audits import Audit
from recovery_api.models.pipelines import Pipeline


class AcknowledgedOmission(models.Model):
    """Position and ordinal as held. A withdrawn one is kept, and the coordinate is owed again.

    `act`: those that were acknowledged in one act share it. `until`: from then on it is owed again by itself, by this
    database's clock; null: for good. `is_by_content`: an export named it by its key and content alone. `accepted_seen_at`:
    when a reading of the record first showed it accepted all the same; null: none did.
    """

    pipeline = models.ForeignKey(Pipeline, on_delete=models.PROTECT, related_name="omissions")
    lane = models.TextField()
    position = models.BigIntegerField()
    ordinal = models.BigIntegerField(default=0)
    reason = models.TextField()
    reference = models.TextField(blank=True, default="")
    act = models.UUIDField(default=uuid.uuid4)
    until = models.DateTimeField(null=True, blank=True)
    acknowledged_by = models.CharField(max_length=200)
    acknowledged_at = models.DateTimeField()
    is_by_content = models.BooleanField(default=False)
    accepted_seen_at = models.DateTimeField(null=True, blank=True)
    withdrawn_by = models.CharField(max_length=200, blank=True, default="")
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["pipeline", "lane", "position", "ordinal"]
        indexes = [
            models.Index(fields=["act"], name="omissions_of_an_act"),
            models.Index(
                fields=["until"],
                condition=Q(withdrawn_at__isnull=True, until__isnull=False),
                name="omissions_that_end",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["pipeline", "lane", "position", "ordinal"],
                condition=Q(withdrawn_at__isnull=True),
                name="a_coordinate_is_acknowledged_once",
            ),
            models.CheckConstraint(condition=~Q(reason=""), name="an_omission_has_a_reason"),
            models.CheckConstraint(
                condition=Q(until__isnull=True) | Q(until__gt=models.F("acknowledged_at")),
                name="an_omission_ends_after_it_began",
            ),
        ]

    def __str__(self) -> str:
        return f"omission {self.lane}:{self.position}:{self.ordinal}"


class OmissionPreview(models.Model):
    """What would be acknowledged, as somebody was shown it. `audit`: the newest one that stood then, which decided.

    `asked`: the filter, or of an export what was read of its lines. `counts`: how many coordinates are of each word; null:
    a worker still looks them up. `confirmed_at` set: it was done, and its coordinates are in `AcknowledgedOmission`.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    pipeline = models.ForeignKey(Pipeline, on_delete=models.PROTECT, related_name="omission_previews")
    audit = models.ForeignKey(Audit, on_delete=models.PROTECT, related_name="+")
    way = models.CharField(max_length=20, choices=choices(Way))
    asked = models.JSONField(default=dict)
    counts = models.JSONField(null=True, blank=True)
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField()
    confirmed_by = models.CharField(max_length=200, blank=True, default="")
    confirmed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["created_at"], name="omission_previews_by_age")]
        constraints = [
            models.CheckConstraint(condition=Q(way__in=words(Way)), name="a_way_to_acknowledge_is_known"),
            models.CheckConstraint(
                condition=Q(confirmed_at__isnull=True) | Q(counts__isnull=False),
                name="only_what_was_shown_is_confirmed",
            ),
        ]

    def __str__(self) -> str:
        return f"preview {self.id}"


class PreviewedOmission(models.Model):
    """One coordinate, event id or content of a preview. `line`: where an export has it. `word`: empty until it was looked up.

    `position` null: no one committed event was found for it. `payload`: key and content of a line that names its event by
    them alone (dead_letters.Payload), empty once it was looked up. They go when the preview is confirmed, or old.
    """

    preview = models.ForeignKey(OmissionPreview, on_delete=models.CASCADE, related_name="places")
    line = models.BigIntegerField(null=True)
    lane = models.TextField()
    position = models.BigIntegerField(null=True)
    ordinal = models.BigIntegerField(null=True)
    event_id = models.TextField(blank=True, default="")
    payload = models.TextField(blank=True, default="")
    word = models.CharField(max_length=30, choices=choices(Word), blank=True, default="")

    class Meta:
        indexes = [models.Index(fields=["preview", "lane", "position", "ordinal"], name="previewed_omissions_by_place")]

    def __str__(self) -> str:
        return f"{self.word or 'not looked up'} {self.lane}:{self.position}:{self.ordinal}"
