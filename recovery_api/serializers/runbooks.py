"""What a runbook looks like, for the OpenAPI document."""

from __future__ import annotations

from rest_framework import serializers

from recovery_api.serializers.members import maybe


class RunbookShape(serializers.Serializer):
    name = serializers.CharField()
    title = serializers.CharField()
    pipeline = maybe(serializers.CharField, help_text="Whose values are filled in; null: nobody's.")
    markdown = serializers.CharField()
    team_markdown = maybe(serializers.CharField, help_text="The team's own page of the same name, word for word.")
    html = serializers.CharField(help_text="Both as a page of its own, without scripts.")
