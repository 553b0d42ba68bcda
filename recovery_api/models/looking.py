"""What a person keeps for looking: filters by name, and when they last looked. Nothing is decided by either."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import F, Q


class SavedFilter(models.Model):
    """The overview as a person wants to find it again. `query`: the filters of its address, as domain.saved_filters writes them."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_filters")
    name = models.CharField(max_length=100)
    query = models.CharField(max_length=2000)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["person", "name"], name="a_person_has_one_filter_of_a_name"),
            models.CheckConstraint(condition=~Q(name="") & ~Q(query=""), name="a_saved_filter_has_a_name_and_filters"),
        ]

    def __str__(self) -> str:
        return f"filter {self.name}"


class LastLook(models.Model):
    """When a person last looked at something: `overview`, or `pipeline:12`. By the control database's clock.

    `before_at`: the last look of the visit before this one, from which what changed is counted; null: this is the first
    visit. A visit ends where nobody looked for a while (services.looking).
    """

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    subject = models.CharField(max_length=40)
    seen_at = models.DateTimeField()
    before_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["person", "subject"], name="a_person_looks_at_a_thing_in_one_row"),
            models.CheckConstraint(
                condition=Q(before_at__isnull=True) | Q(before_at__lte=F("seen_at")), name="a_look_before_is_not_later"
            ),
        ]

    def __str__(self) -> str:
        return f"look at {self.subject} of {self.person_id}"
