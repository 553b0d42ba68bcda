"""What the history looks like, for the OpenAPI document. Rows are made by recovery_api.history_rows."""

from __future__ import annotations

from rest_framework import serializers

from recovery_api.domain.headroom.live import Standing
from recovery_api.domain.history import SPANS
from recovery_api.domain.words import words
from recovery_api.models import AuditStatus
from recovery_api.serializers.members import Moment, WideField, maybe

STATUSES = [*AuditStatus.values, "running"]


class StretchShape(serializers.Serializer):
    """One status from `since` until `until`."""

    since = Moment()
    until = Moment()
    status = serializers.ChoiceField(STATUSES, allow_null=True, help_text="null: not observed.")
    seconds = WideField()
    unobserved_seconds = WideField(help_text="Of that time nobody looked.")
    audits = WideField()


class ObservedShape(serializers.Serializer):
    """The worst of each figure from `since` until `until`; null: not observed, or not known."""

    since = Moment()
    until = Moment()
    unobserved_seconds = WideField()
    status = serializers.ChoiceField(STATUSES, allow_null=True)
    audits = maybe(WideField)
    owed = maybe(WideField, help_text="Lost, and nobody acknowledged it.")
    oldest_owed_seconds = maybe(WideField, help_text="Since its commit, where that is known.")
    lag_events = maybe(WideField, help_text="Committed and not accepted: owed, or newer than what was judged.")
    lag_seconds = maybe(WideField, help_text="The oldest of these has waited so long, at least.")
    accepted_per_second = maybe(serializers.CharField, help_text="Since the audit before; the least.")
    hazards = maybe(WideField, help_text="Premature and duplicates.")
    headroom = serializers.ChoiceField(words(Standing), allow_null=True)
    headroom_seconds = maybe(WideField, help_text="The least; where `headroom` is unknown, at most so much.")


class HistoryShape(serializers.Serializer):
    pipeline = serializers.CharField()
    span = serializers.ChoiceField(list(SPANS))
    since = Moment()
    until = Moment()
    point_seconds = WideField(help_text="What one point stands for.")
    stretches = StretchShape(many=True)
    points = ObservedShape(many=True)
