"""What an intent looks like: how far its work is, what it brought, or why it failed."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from recovery_api.domain.words import words
from recovery_api.models import DrillState, IntentAction, IntentState, PlanState, RecoveryOutcome
from recovery_api.serializers.members import Anything, Moment, WideField, maybe

UUID = {"type": "string", "format": "uuid"}
TEXT = {"type": "string"}
RESULT: dict[str, Any] = {
    "type": "object",
    "description": "By action. audit: `audit`, its `status` and `exit_code`. plan: `plan`, its `state` and `digest`. "
    "recover: `recovery` and its `outcome`. drill: `drill` and its `verdict`. settle: what became of it, in `says`. "
    "connection_test: the report, as a source or a sink keeps it. sink_read, sink_install, event_read: what was read or "
    "done. omission_look_up: `preview` and its `counts`. archive_import: `files`, `events`. Withdrawn work: `cancelled_by`.",
    "properties": {
        "audit": UUID,
        "status": TEXT,
        "exit_code": {"type": "integer"},
        "plan": UUID,
        "state": {"type": "string", "enum": PlanState.values},
        "digest": TEXT,
        "recovery": UUID,
        "outcome": {"type": "string", "enum": RecoveryOutcome.values},
        "drill": UUID,
        "preview": UUID,
        "verdict": {"type": "string", "enum": DrillState.values},
        "sink": TEXT,
        "standing": TEXT,
        "says": TEXT,
        "is_usable": {"type": "boolean"},
        "cancelled_by": TEXT,
    },
    "additionalProperties": True,
}


class ProgressShape(serializers.Serializer):
    """How far the work is, as its worker last said. Steps may have further members."""

    step = serializers.CharField(help_text="What it is at, in words.")
    done = maybe(WideField, help_text="Of `total`, in `unit`; null: this step is not counted.")
    total = maybe(WideField)
    unit = serializers.CharField(required=False)
    rate_per_second = maybe(serializers.FloatField)
    says = serializers.CharField(required=False)


class ErrorShape(serializers.Serializer):
    """What went wrong in the work itself. Read `code` and `data`; `text` is for people."""

    code = serializers.CharField(help_text="One of `/problems`.")
    data = Anything()
    text = serializers.CharField()
    is_transient = serializers.BooleanField(help_text="true: it is tried again, and may succeed.")


@extend_schema_field(RESULT)
class ResultField(serializers.JSONField):
    """What the work brought."""


class IntentShape(serializers.Serializer):
    """Work that was asked for. The row is the obligation: it stays queued while no worker is there."""

    intent = serializers.UUIDField()
    action = serializers.ChoiceField(words(IntentAction))
    state = serializers.ChoiceField(IntentState.values)
    pipeline = maybe(serializers.CharField)
    plan = maybe(serializers.UUIDField)
    recovery = maybe(serializers.UUIDField)
    attempts = serializers.IntegerField()
    taken_by = serializers.CharField(allow_blank=True)
    progress = maybe(ProgressShape)
    result = maybe(ResultField, help_text="null: not done.")
    error = maybe(ErrorShape, help_text="Of the last attempt.")
    created_at = Moment()
    created_by = serializers.CharField()
    finished_at = maybe(Moment)
