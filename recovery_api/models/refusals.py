"""How often one person was refused in one hour. The timeline keeps the first; it cannot be shortened, and a robot that
tries again and again must not fill it."""

from __future__ import annotations

from django.db import models

from recovery_api.models.events import Event


class RefusalCount(models.Model):
    """`event` is the first refusal of that hour; `count` goes on with every further one, `last_at` with it."""

    actor = models.CharField(max_length=200)
    hour = models.DateTimeField()
    # Without a constraint of the database: an event is never deleted, and TRUNCATE is refused by the timeline's own trigger.
    event = models.OneToOneField(Event, on_delete=models.PROTECT, related_name="refusals", db_constraint=False)
    count = models.BigIntegerField(default=1)
    last_at = models.DateTimeField()
    last_says = models.TextField(default="")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["actor", "hour"], name="a_persons_refusals_are_counted_by_hour")]

    def __str__(self) -> str:
        return f"{self.count} refusals of {self.actor} from {self.hour.isoformat()}"
