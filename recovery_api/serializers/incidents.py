"""What an incident and its post-mortem look like, for the OpenAPI document."""

from __future__ import annotations

from rest_framework import serializers

from recovery_api.domain.alerts.causes import Severity
from recovery_api.domain.incidents import IncidentState
from recovery_api.domain.words import words
from recovery_api.serializers.members import Moment, WideField, maybe, texts

STATES = words(IncidentState)


class IncidentShape(serializers.Serializer):
    incident = serializers.UUIDField()
    title = serializers.CharField()
    state = serializers.ChoiceField(STATES)
    severity = serializers.ChoiceField(words(Severity))
    commander = serializers.CharField(allow_blank=True, help_text="Empty: nobody is named.")
    cause = serializers.CharField(allow_blank=True, help_text="Written down before it is closed.")
    pipelines = texts("By name.")
    alerts = texts("The keys of the alerts that belong to it.")
    noticed_at = Moment()
    opened_at = Moment()
    opened_by = serializers.CharField()
    closed_at = maybe(Moment)


class PipelineFiguresShape(serializers.Serializer):
    pipeline = serializers.CharField()
    last_clean_at = maybe(Moment)
    first_owed_at = maybe(Moment, help_text="The first reading that showed something owed or wrong.")
    well_at = maybe(Moment, help_text="The first clean reading after the last one that was not.")
    well_words = serializers.CharField(allow_blank=True)
    owed_at_most = WideField()
    hazards_at_most = WideField()


class FiguresShape(serializers.Serializer):
    """What no row shows is null."""

    first_owed_at = maybe(Moment)
    noticed_at = Moment()
    first_action_at = maybe(Moment)
    first_action_by = maybe(serializers.CharField)
    well_at = maybe(Moment, help_text="When all of its pipelines were well again.")
    events_touched = WideField()
    delivered = WideField(help_text="By its recoveries.")
    already_present = WideField()
    altered = WideField()
    approvers = texts()
    pipelines = PipelineFiguresShape(many=True)


class PostMortemShape(serializers.Serializer):
    incident = IncidentShape()
    figures = FiguresShape()
    markdown = serializers.CharField()
    html = serializers.CharField(help_text="The same as a page of its own, without scripts.")
