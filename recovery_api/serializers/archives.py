"""What the archive's answers look like, for the OpenAPI document. Rows are made by recovery_api.archive_rows."""

from __future__ import annotations

from rest_framework import serializers

from recovery_api.serializers.members import Moment, WideField, maybe


class ArchiveHeldShape(serializers.Serializer):
    lane = serializers.CharField()
    incarnation = serializers.CharField(help_text="The source's server, timeline and table that it was read from.")
    above = maybe(serializers.CharField, help_text="null: from the beginning.")
    to = serializers.CharField()
    files = WideField()
    events = WideField()
    bytes = WideField()
    kept_until = Moment(help_text="When the first of its files goes, unless an open item needs it.")
    needed_files = WideField(help_text="Kept for longer, because an open item needs them.")
    registered_files = WideField(help_text="Registered by a person, not written by an audit.")


class ArchiveShape(serializers.Serializer):
    pipeline = serializers.CharField()
    is_archived = serializers.BooleanField(help_text="Whether each audit writes to it.")
    days = WideField()
    held = ArchiveHeldShape(many=True)
    problems = serializers.ListField(
        child=serializers.CharField(), help_text="What the newest audit could not bring there, and why."
    )
