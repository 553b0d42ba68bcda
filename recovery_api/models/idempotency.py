"""What was answered to a request that carried an `Idempotency-Key`, so that the same request gets the same answer."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class RememberedAnswer(models.Model):
    """Written in the transaction of what the request did: both stand, or neither. `body` is the answer, byte for byte."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=200)
    request_digest = models.CharField(max_length=64)
    status = models.SmallIntegerField()
    content_type = models.CharField(max_length=100)
    location = models.TextField(blank=True, default="")
    body = models.TextField()
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["person", "key"], name="an_idempotency_key_is_used_once"),
            models.CheckConstraint(
                condition=models.Q(status__gte=200, status__lt=500), name="a_defect_is_not_remembered"
            ),
        ]
        indexes = [models.Index(fields=["expires_at"], name="answers_by_their_end")]

    def __str__(self) -> str:
        return f"answer to {self.key}"
