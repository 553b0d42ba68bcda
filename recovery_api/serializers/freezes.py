"""What a freeze looks like, for the OpenAPI document."""

from __future__ import annotations

from rest_framework import serializers

from recovery_api.serializers.members import Moment, maybe


class FreezeShape(serializers.Serializer):
    pipeline = maybe(serializers.CharField, help_text="null: every pipeline.")
    reason = serializers.CharField()
    frozen_by = serializers.CharField()
    frozen_at = Moment()
    lifted_at = maybe(Moment, help_text="null: it stands.")
    lifted_by = serializers.CharField(allow_blank=True)
    lifted_because = serializers.CharField(allow_blank=True)
