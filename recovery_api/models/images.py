"""An image audit: a copy of state beside the history at one frontier. Of the ledger's verdict it says nothing."""

from __future__ import annotations

import functools
import operator
import uuid

from django.db import models
from django.db.models import Q

from recovery_api.domain.outcomes import OUTCOMES, ImageStatus
from recovery_api.domain.words import choices, words
from recovery_api.models.intents import Intent
from recovery_api.models.pipelines import Pipeline


def _exits_as_it_says() -> Q:
    pairs = [Q(status=status, exit_code=OUTCOMES[status].exit_code) for status in words(ImageStatus)]
    return functools.reduce(operator.or_, pairs)


class ImageAudit(models.Model):
    """`counts`: how many keys are told as what (domain.images.ImageWord). `sample`: a few of each word: word, key, and the
    coordinate of its latest event. `gap`: why the history was not whole; "": it was, by itself or by a base. `base_digest`:
    what `Src` gave each key is kept at `evidence_uri`, for `base_incarnation` and `base_mapping`; "": it is not. `based_on`:
    the image audit whose base was read. `evidence_gone_at`: since when its parts are gone (domain.retention).
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    pipeline = models.ForeignKey(Pipeline, on_delete=models.PROTECT, related_name="images")
    intent = models.OneToOneField(Intent, null=True, blank=True, on_delete=models.SET_NULL, related_name="image")
    status = models.CharField(max_length=20, choices=choices(ImageStatus))
    exit_code = models.SmallIntegerField()
    says = models.TextField()
    is_scheduled = models.BooleanField(default=False)
    frontier = models.JSONField(default=dict)
    target = models.TextField(blank=True, default="")
    keys_count = models.BigIntegerField(default=0)
    rows_count = models.BigIntegerField(default=0)
    counts = models.JSONField(default=dict)
    sample = models.JSONField(default=list)
    givens = models.JSONField(default=list)
    weaknesses = models.JSONField(default=list)
    gap = models.TextField(blank=True, default="")
    source_snapshot = models.TextField(blank=True, default="")
    sink_snapshot = models.TextField(blank=True, default="")
    evidence_uri = models.TextField(blank=True, default="")
    evidence_gone_at = models.DateTimeField(null=True, blank=True)
    base_digest = models.CharField(max_length=64, blank=True, default="")
    base_incarnation = models.TextField(blank=True, default="")
    base_mapping = models.CharField(max_length=64, blank=True, default="")
    based_on = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField()

    class Meta:
        ordering = ["-finished_at"]
        indexes = [models.Index(fields=["pipeline", "-finished_at"], name="images_of_a_pipeline")]
        constraints = [
            models.CheckConstraint(condition=Q(status__in=words(ImageStatus)), name="an_image_status_is_known"),
            models.CheckConstraint(condition=_exits_as_it_says(), name="an_image_exits_as_its_status_says"),
            models.CheckConstraint(
                condition=(~Q(status=ImageStatus.MISMATCH_FREE) | Q(givens=[]))
                & (~Q(status=ImageStatus.MISMATCH_FREE_GIVEN) | ~Q(givens=[])),
                name="only_what_was_given_nothing_is_mismatch_free",
            ),
            models.CheckConstraint(
                condition=Q(base_digest="") | (~Q(base_incarnation="") & ~Q(base_mapping="") & ~Q(evidence_uri="")),
                name="a_base_says_what_it_is_of",
            ),
            models.CheckConstraint(
                condition=Q(finished_at__gte=models.F("started_at")), name="an_image_ends_after_it_starts"
            ),
        ]

    def __str__(self) -> str:
        return f"image {self.id}"
