"""The tables in Django's admin, to look at. Nothing is added, changed or deleted here: services write."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db import models
from django.http import HttpRequest

from recovery_api.models import (
    AcknowledgedOmission,
    Alert,
    AlertGroup,
    AlertLine,
    ArchivePart,
    Audit,
    Claim,
    Delivery,
    Destination,
    Drill,
    Event,
    EventContent,
    EvidencePlace,
    Finding,
    Freeze,
    Generation,
    HeadroomFigure,
    ImageAudit,
    Incident,
    Intent,
    LastLook,
    LedgerBlock,
    LedgerItem,
    LedgerLane,
    LedgerReading,
    Mute,
    Observation,
    OmissionPreview,
    Pipeline,
    Plan,
    PreviewedOmission,
    Recovery,
    RefusalCount,
    RememberedAnswer,
    Route,
    SavedFilter,
    Schedule,
    SettledItems,
    Sink,
    Source,
    Token,
    Upkeep,
    Worker,
)


class ReadOnlyAdmin(admin.ModelAdmin):
    """Shows the columns; permits nothing but looking."""

    show_full_result_count = False
    exclude = ("report", "result", "body")  # sample rows are for who asked for them, remembered answers for nobody

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        return {}


COLUMNS: dict[type[models.Model], tuple[tuple[str, ...], tuple[str, ...]]] = {
    Source: (("name", "kind", "tested_at"), ("kind",)),
    Sink: (("name", "kind", "tested_at", "said_counter", "said_fence", "restored_at"), ("kind",)),
    Pipeline: (("name", "source", "sink", "delivery", "requires_other_approver"), ()),
    Incident: (("title", "state", "severity", "commander", "opened_at", "closed_at"), ("state", "severity")),
    Freeze: (("pipeline", "reason", "frozen_by", "frozen_at", "lifted_at"), ()),
    Schedule: (("pipeline", "next_due_at", "due_at", "last_due_at", "waiting_since"), ()),
    Intent: (("id", "action", "pipeline", "state", "taken_by", "attempts", "created_at"), ("action", "state")),
    Observation: (("pipeline", "at", "until", "grain", "status", "owed", "lag_events", "hazards"), ("grain", "status")),
    Upkeep: (("name", "done_at"), ()),
    Audit: (
        ("id", "pipeline", "status", "lost_count", "premature_count", "duplicate_count", "finished_at"),
        ("status",),
    ),
    EvidencePlace: (("uri", "begun_at", "kept_at", "recovery", "released_at", "swept_at"), ()),
    ImageAudit: (("id", "pipeline", "status", "keys_count", "rows_count", "finished_at"), ("status",)),
    Plan: (("id", "pipeline", "state", "batch_count", "author", "approved_by", "created_at"), ("state",)),
    Recovery: (
        ("id", "pipeline", "state", "outcome", "generation", "landed_count", "created_at"),
        ("state", "outcome"),
    ),
    Generation: (("number", "pipeline", "purpose", "fate", "asked_by", "taken_at"), ("purpose", "fate")),
    Claim: (("generation", "pipeline", "recovery", "state", "arm", "landed_count", "said_at"), ("state",)),
    AcknowledgedOmission: (("pipeline", "lane", "position", "ordinal", "reason", "withdrawn_at"), ()),
    HeadroomFigure: (("pipeline", "standing", "decide_by", "worked_out_at", "holds_until"), ("standing",)),
    LastLook: (("person", "subject", "seen_at", "before_at"), ()),
    SavedFilter: (("person", "name", "query", "created_at"), ()),
    LedgerLane: (("pipeline", "lane", "read_at", "unjustifiable_count", "is_whole", "void_since"), ("is_whole",)),
    LedgerReading: (("pipeline", "read_at", "epoch"), ()),
    LedgerBlock: (("pipeline", "lane", "low_position", "high_position", "derived_at"), ()),
    LedgerItem: (
        ("pipeline", "lane", "position", "ordinal", "word", "is_content_gone", "first_seen_at", "settled_by"),
        ("word", "is_content_gone", "settled_by"),
    ),
    SettledItems: (("pipeline", "lane", "word", "settled_by", "count", "last_settled_at"), ("word", "settled_by")),
    ArchivePart: (("pipeline", "lane", "low_position", "high_position", "rows", "expires_at", "gone_at"), ()),
    OmissionPreview: (("id", "pipeline", "way", "created_by", "created_at", "confirmed_at"), ("way",)),
    PreviewedOmission: (("preview", "line", "lane", "position", "ordinal", "event_id", "word"), ("word",)),
    Drill: (("id", "sink", "state", "requested_by", "requested_at", "finished_at"), ("state",)),
    Worker: (("name", "queues", "started_at", "seen_at", "stopping_at"), ()),
    Token: (("name", "user", "roles", "created", "expiry", "revoked_at"), ()),
    RefusalCount: (("actor", "hour", "count", "last_at"), ()),
    RememberedAnswer: (("key", "person", "status", "created_at", "expires_at"), ("status",)),
    Finding: (("number", "audit", "plan", "finding", "cause", "lane", "position", "ordinal"), ("finding",)),
    EventContent: (("intent", "kept_until"), ()),
    Alert: (
        ("cause", "subject", "severity", "opened_at", "resolved_at", "told", "acknowledged_until", "muted_until"),
        ("cause", "severity", "told"),
    ),
    AlertGroup: (("cause", "end", "way", "severity", "round", "opened_at", "closed_at"), ("cause",)),
    AlertLine: (("alert", "at", "change", "actor", "says"), ("change",)),
    Mute: (("by", "value", "cause", "until", "created_by", "ended_at"), ("by",)),
    Destination: (("name", "shape", "address", "disabled_at", "retired_at"), ("shape",)),
    Route: (("position", "destination", "least", "causes", "labels", "goes_on"), ("least",)),
    Delivery: (("number", "destination", "kind", "state", "created_at", "sent_at", "attempts", "is_late"), ("state",)),
    Event: (("id", "at", "kind", "actor", "pipeline", "generation", "says"), ("kind",)),
}
"""Each table's columns in its list, and those it is filtered by."""

for _model, (_shown, _filters) in COLUMNS.items():
    _related = [name for name in _shown if _model._meta.get_field(name).is_relation]
    _attributes = {"list_display": _shown, "list_filter": _filters, "list_select_related": _related}
    admin.site.register(_model, type(f"{_model.__name__}Admin", (ReadOnlyAdmin,), _attributes))
