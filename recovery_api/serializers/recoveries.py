"""What a recovery and its certificate look like, for the OpenAPI document."""

from __future__ import annotations

from rest_framework import serializers

from recovery_api.models import RecoveryOutcome, RecoveryState, Wanted
from recovery_api.serializers.members import Anything, Moment, WideField, maybe, texts, things
from recovery_api.serializers.work import ErrorShape, IntentShape


class RecoveryShape(serializers.Serializer):
    recovery = serializers.UUIDField()
    plan = serializers.UUIDField()
    pipeline = serializers.CharField()
    state = serializers.ChoiceField(RecoveryState.values)
    outcome = maybe(serializers.ChoiceField, choices=RecoveryOutcome.values)
    says = serializers.CharField(allow_blank=True)
    frontier = maybe(serializers.CharField)
    generation = maybe(WideField)
    part = serializers.IntegerField()
    parts = serializers.IntegerField()
    armed = maybe(WideField)
    landed = WideField()
    absorbed = WideField()
    altered = WideField()
    start = maybe(Anything, help_text="Where the next relay run starts, as held, by lane.")
    wanted = serializers.ChoiceField(Wanted.values, help_text="What a person asked last.")
    steering = serializers.ChoiceField(
        ["running", "frozen", "pause asked", "paused", "stop asked", "finished"], help_text="What is so."
    )
    steering_says = serializers.CharField(allow_blank=True)
    problem = maybe(ErrorShape, help_text="Why its work failed; it waits to be settled.")
    reason = serializers.CharField()
    attestations = texts()
    attested = things("The same, each with name, text, given, since, by, attested_by, attested_at.")
    requested_by = serializers.CharField()
    certificate = maybe(Anything, help_text="Exactly what its digest was taken of.")
    certificate_digest = serializers.CharField(allow_blank=True)
    certificate_evidence_until = maybe(Moment, help_text="null: no such moment is known.")
    certificate_is_expired = serializers.BooleanField(help_text="It reads unknown: an end may have forgotten.")
    certificate_is_void = serializers.BooleanField()
    certificate_void_says = serializers.CharField()
    created_at = Moment()
    fired_at = maybe(Moment)
    finished_at = maybe(Moment)
    work = maybe(IntentShape, help_text="The live intent; null: nobody has to do anything now.")


class CertificateShape(serializers.Serializer):
    recovery = serializers.UUIDField()
    certificate = Anything(help_text="Exactly what its digest was taken of: numbers are numbers here.")
    certificate_digest = serializers.CharField(help_text="SHA-256 of the JSON with sorted members, `, ` and `: `.")
    certificate_evidence_until = maybe(Moment, help_text="null: no such moment is known.")
    certificate_is_expired = serializers.BooleanField(help_text="It reads unknown: an end may have forgotten.")
    certificate_is_void = serializers.BooleanField()
    certificate_void_says = serializers.CharField()
