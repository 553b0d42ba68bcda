"""A worker process that says it is there. A courtesy to people: nothing is decided by it, and no work hangs on it."""

from __future__ import annotations

from django.db import models


class Worker(models.Model):
    """One running worker: host and process. It says so every few seconds, and takes its row away when it ends.

    `queues`: what it takes; empty: a process that only sweeps. A killed worker's row stays, with an old `seen_at`.
    """

    name = models.CharField(max_length=200, primary_key=True)
    queues = models.JSONField(default=list)
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    stopping_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-seen_at"]

    def __str__(self) -> str:
        return f"worker {self.name}"
