"""What the answer about purging a source looks like, for the OpenAPI document."""

from __future__ import annotations

from rest_framework import serializers

from recovery_api.domain.purging import Answer
from recovery_api.domain.words import words
from recovery_api.serializers.members import Moment, WideField, maybe


class PurgeSaidShape(serializers.Serializer):
    pipeline = maybe(serializers.CharField, help_text="Null: no active pipeline reads the source.")
    answer = serializers.ChoiceField(words(Answer))
    says = serializers.CharField()
    remedy = serializers.CharField(allow_blank=True)
    until = maybe(Moment, help_text="From then on it is yes if nothing else changes; null: no clock brings it.")


class PurgeLaneShape(serializers.Serializer):
    lane = serializers.CharField()
    below = serializers.CharField()
    answer = serializers.ChoiceField(words(Answer))
    pipelines = PurgeSaidShape(many=True)
    highest = maybe(serializers.CharField, help_text="The highest counted coordinate that may go; null: none.")
    counted = maybe(WideField, help_text="How many rows an audit counted at or below it.")
    uncleared_at_least = maybe(
        WideField,
        help_text="A purge up to `below` would take at least this many rows above `highest`; null: it may go.",
    )
    uncleared_at_most = maybe(WideField, help_text="Null: no audit counted so far, or it may go.")
    uncleared_says = serializers.CharField(allow_blank=True)
    transaction = maybe(
        serializers.CharField, help_text="SQL that a person runs: it deletes what was counted, or nothing."
    )
    transaction_says = serializers.CharField()


class PurgeShape(serializers.Serializer):
    """Whether a source may be purged. Anything but yes: nothing at or below may go."""

    source = serializers.CharField()
    answer = serializers.ChoiceField(words(Answer))
    asked_at = Moment()
    lanes = PurgeLaneShape(many=True)
