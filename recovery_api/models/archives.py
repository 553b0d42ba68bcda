"""The archive's parts: each file of committed events that an audit wrote (domain.archives)."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from recovery_api.models.audits import Audit
from recovery_api.models.pipelines import Pipeline


class ArchivePart(models.Model):
    """One file: the lane's events from `low` (null: from the beginning) up to but not including `high`.

    `file`: its name. `place`: where it lies in a bucket, or in a folder that was named as a URL; "": in the pipeline's folder
    of the archive, below the one that is set for evidence. `digest`: the batch digest of
    its rows; `file_digest`: SHA-256 of its bytes. `incarnation`, `mapping`: of the source, as it was read; `read_to`: the
    first transaction number of the source that was not given out then. `audit`: that wrote it; null: it was registered, by
    `registered_by`. `joined_at`: when its day was over and its file was made of that day's, or stayed alone; null: not yet.
    `gone_at`: its file was deleted, and `gone_because`; the row stays and says that it was there.
    """

    pipeline = models.ForeignKey(Pipeline, on_delete=models.PROTECT, related_name="archive_parts")
    lane = models.TextField()
    low_position = models.BigIntegerField(null=True, blank=True)
    low_ordinal = models.BigIntegerField(null=True, blank=True)
    high_position = models.BigIntegerField()
    high_ordinal = models.BigIntegerField()
    rows = models.BigIntegerField()
    bytes = models.BigIntegerField()
    digest = models.TextField()
    file = models.TextField()
    place = models.TextField(blank=True, default="")
    file_digest = models.CharField(max_length=64)
    incarnation = models.TextField()
    mapping = models.CharField(max_length=64)
    read_to = models.TextField(blank=True, default="")
    audit = models.ForeignKey(Audit, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    registered_by = models.CharField(max_length=200, blank=True, default="")
    written_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    joined_at = models.DateTimeField(null=True, blank=True)
    gone_at = models.DateTimeField(null=True, blank=True)
    gone_because = models.TextField(blank=True, default="")

    class Meta:
        ordering = ["pipeline", "lane", "high_position", "high_ordinal", "id"]
        indexes = [
            models.Index(fields=["expires_at"], condition=Q(gone_at__isnull=True), name="archive_parts_by_end"),
            models.Index(
                fields=["written_at"],
                condition=Q(audit__isnull=False, gone_at__isnull=True, joined_at__isnull=True),
                name="archive_parts_to_join",
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["pipeline", "file"], name="an_archive_file_is_one_part"),
            models.CheckConstraint(
                condition=Q(low_position__isnull=True, low_ordinal__isnull=True)
                | Q(low_position__lt=F("high_position"), low_ordinal__isnull=False)
                | Q(low_position=F("high_position"), low_ordinal__lt=F("high_ordinal")),
                name="an_archive_part_begins_before_it_ends",
            ),
            models.CheckConstraint(
                condition=~Q(incarnation="") & ~Q(mapping="") & ~Q(file_digest="") & ~Q(file=""),
                name="an_archive_part_says_what_it_is_of",
            ),
            models.CheckConstraint(
                condition=Q(audit__isnull=False, registered_by="") | (Q(audit__isnull=True) & ~Q(registered_by="")),
                name="an_archive_part_is_an_audits_or_a_persons",
            ),
            models.CheckConstraint(
                condition=Q(gone_at__isnull=True, gone_because="") | (Q(gone_at__isnull=False) & ~Q(gone_because="")),
                name="an_archive_part_is_gone_for_a_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"archive part {self.file} of pipeline {self.pipeline_id}"
