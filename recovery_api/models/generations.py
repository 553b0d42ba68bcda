"""Generations and claims, as the sink said. The sink owns both; these rows remember."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from recovery_api.models.pipelines import Pipeline
from recovery_api.models.recoveries import Recovery


class GenerationPurpose(models.TextChoices):
    """Who asked the sink for a number."""

    RELAY = "relay"
    """A start of a relay group."""
    RECOVERER = "recoverer"
    """A recovery, or its successor after a crash: a successor always takes a new one."""


class GenerationFate(models.TextChoices):
    """What became of a generation, as far as the sink said."""

    ALLOCATED = "allocated"
    """The sink gave the number. A crash here wastes it; numbers are never used again."""
    CLAIMED = "claimed"
    """Its claim was granted. A crash leaves the claim open at the sink."""
    STARTED = "started"
    """A relay run began in it."""
    FIRED = "fired"
    """Its batch landed."""
    SUPERSEDED = "superseded"
    """A newer generation passed it."""
    RELEASED = "released"
    """A person, or its own recovery, gave the claim up."""


class Generation(models.Model):
    """One number a sink allocated for a pipeline."""

    pipeline = models.ForeignKey(Pipeline, on_delete=models.PROTECT, related_name="generations")
    recovery = models.ForeignKey(Recovery, null=True, blank=True, on_delete=models.PROTECT, related_name="generations")
    number = models.BigIntegerField()
    purpose = models.CharField(max_length=20, choices=GenerationPurpose.choices)
    asked_by = models.CharField(max_length=200)
    taken_at = models.DateTimeField()
    fate = models.CharField(max_length=20, choices=GenerationFate.choices, default=GenerationFate.ALLOCATED)
    settled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["pipeline", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["pipeline", "number"], name="a_generation_is_allocated_once"),
            models.CheckConstraint(condition=Q(number__gte=0), name="a_generation_counts_from_zero"),
            models.CheckConstraint(condition=Q(purpose__in=GenerationPurpose.values), name="a_purpose_is_known"),
            models.CheckConstraint(condition=Q(fate__in=GenerationFate.values), name="a_generation_fate_is_known"),
        ]

    def __str__(self) -> str:
        return f"generation {self.number}"


class ClaimState(models.TextChoices):
    """A claim's state in the sink's own words."""

    OPEN = "open"
    """It stands. Its fire, a release or a newer generation moves it on; a crash of the recoverer leaves it open."""
    FIRED = "fired"
    """Its batch landed. Final."""
    SUPERSEDED = "superseded"
    """The fence has passed it; nothing of it can land any more. Final."""
    RELEASED = "released"
    """Given up on purpose; the fence stays where it is. Final."""
    NONE = "none"
    """The sink knows no claim at this generation: it was never granted, or the sink was restored."""


FINAL_CLAIM_STATES = (ClaimState.FIRED, ClaimState.SUPERSEDED, ClaimState.RELEASED)


class Claim(models.Model):
    """One claim, as last read from the sink. `part`: which frontier of a split recovery it belongs to.

    `superseded_who`: who took the generation that passed it, as that one named itself to the sink.
    """

    pipeline = models.ForeignKey(Pipeline, on_delete=models.PROTECT, related_name="claims")
    recovery = models.ForeignKey(Recovery, on_delete=models.PROTECT, related_name="claims")
    generation = models.BigIntegerField()
    part = models.IntegerField(default=0)
    state = models.CharField(max_length=20, choices=ClaimState.choices)
    claimed_by = models.CharField(max_length=200, blank=True, default="")
    frontier = models.JSONField(null=True, blank=True)
    arm = models.BigIntegerField(null=True, blank=True)
    armed_count = models.BigIntegerField(null=True, blank=True)
    armed_digest = models.TextField(blank=True, default="")
    landed_count = models.BigIntegerField(null=True, blank=True)
    absorbed_count = models.BigIntegerField(null=True, blank=True)
    start = models.JSONField(null=True, blank=True)
    superseded_by = models.BigIntegerField(null=True, blank=True)
    superseded_at = models.DateTimeField(null=True, blank=True)
    superseded_who = models.TextField(blank=True, default="")
    claimed_at = models.DateTimeField()
    said_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["pipeline", "-generation"]
        constraints = [
            models.UniqueConstraint(fields=["pipeline", "generation"], name="a_generation_has_one_claim"),
            models.CheckConstraint(condition=Q(state__in=ClaimState.values), name="a_claim_state_is_known"),
            models.CheckConstraint(
                condition=~Q(state=ClaimState.FIRED) | Q(landed_count__isnull=False),
                name="a_fired_claim_says_what_landed",
            ),
        ]

    def __str__(self) -> str:
        return f"claim at generation {self.generation}"
