"""API tokens: hashed, expiring, revocable, and limited to roles. A row is never deleted: it says what was revoked when."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q
from knox.models import AbstractAuthToken


class Token(AbstractAuthToken):
    """`roles` limits what the token gives; the person's own roles limit it further. `digest` is all that is kept of it.

    `last_used_at` is true to a minute, so that a busy token does not write with every request. None: never used.
    """

    id = models.UUIDField(unique=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=200)
    roles = models.JSONField()
    created_by = models.CharField(max_length=200)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoked_by = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        ordering = ["-created"]
        constraints = [
            models.CheckConstraint(condition=Q(expiry__isnull=False), name="a_token_expires"),
            models.CheckConstraint(condition=~Q(roles=[]), name="a_token_has_a_role"),
        ]

    def __str__(self) -> str:
        return f"token {self.name}"
