"""Shapes of saved filters and of what changed, as the OpenAPI document describes them."""

from __future__ import annotations

from rest_framework import serializers

from recovery_api.serializers.members import Moment, WideField, maybe


class SavedFilterShape(serializers.Serializer):
    filter = serializers.UUIDField()
    name = serializers.CharField()
    query = serializers.CharField()
    url = serializers.CharField(help_text="Where the overview shows it.")
    created_at = Moment()


class RemovedFilterShape(serializers.Serializer):
    removed = serializers.UUIDField()


class VerdictChangedShape(serializers.Serializer):
    pipeline = serializers.CharField()
    was = maybe(serializers.CharField, help_text="Of the last audit before; null: there was none.")
    now = serializers.CharField(help_text="Of the newest audit.")
    is_worse = serializers.BooleanField()


class ChangesShape(serializers.Serializer):
    """By what audits observed: a verdict that grew too old changes here with the next audit."""

    since = Moment()
    verdicts = VerdictChangedShape(many=True)
    alerts_opened = WideField()
    alerts_resolved = WideField()
