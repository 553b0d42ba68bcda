"""What answers about many omissions at once look like, for the OpenAPI document."""

from __future__ import annotations

from rest_framework import serializers

from recovery_api.domain.omissions import Way
from recovery_api.domain.words import words
from recovery_api.serializers.members import Anything, Moment, WideField, maybe


class OmissionPreviewShape(serializers.Serializer):
    """What would be acknowledged. A confirmation acknowledges these coordinates and no others."""

    preview = serializers.UUIDField()
    pipeline = serializers.CharField()
    audit = serializers.UUIDField(help_text="The newest audit that stood: it decides what is lost.")
    way = serializers.ChoiceField(words(Way))
    asked = Anything(help_text="The filter; of an export, how its lines were read.")
    counts = maybe(Anything, help_text="How many events are of each word; null: a worker still looks them up.")
    says = serializers.CharField()
    created_by = serializers.CharField()
    created_at = Moment()
    confirmed_by = maybe(serializers.CharField)
    confirmed_at = maybe(Moment)


class OmissionsActShape(serializers.Serializer):
    """One act: what was acknowledged, or withdrawn, together."""

    act = serializers.UUIDField()
    pipeline = serializers.CharField()
    count = WideField()
