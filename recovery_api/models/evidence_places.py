"""The places of evidence: what each attempt was given to write to, and what it is said to hold."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from recovery_api.models.recoveries import Recovery


class EvidencePlace(models.Model):
    """One place of one attempt, and nobody else's (domain.evidence_places).

    `manifest`: what exists of it, a row an object; written once, in the transaction of what rests on it, at `kept_at`. Null:
    nothing does yet, and a day after `begun_at` nothing will. `recovery`: that read it under its claim. `released_at`: nothing
    rests on it any more, and the sweep takes it away, with this row. `swept_at`: when what no manifest names went from it.
    """

    uri = models.TextField(unique=True)
    begun_at = models.DateTimeField()
    kept_at = models.DateTimeField(null=True, blank=True)
    manifest = models.JSONField(default=list)
    recovery = models.ForeignKey(Recovery, null=True, blank=True, on_delete=models.SET_NULL, related_name="places")
    released_at = models.DateTimeField(null=True, blank=True)
    swept_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["id"]
        indexes = [
            models.Index(fields=["released_at"], condition=Q(released_at__isnull=False), name="evidence_to_take_away"),
            models.Index(
                fields=["begun_at"],
                condition=Q(kept_at__isnull=True, released_at__isnull=True),
                name="evidence_nothing_rests_on",
            ),
            models.Index(
                fields=["kept_at"],
                condition=Q(kept_at__isnull=False, swept_at__isnull=True, released_at__isnull=True),
                name="evidence_to_look_through",
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(kept_at__isnull=False) | Q(manifest=[]), name="a_manifest_is_kept"),
        ]

    def __str__(self) -> str:
        return self.uri
