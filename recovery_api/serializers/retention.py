"""What retention's answers look like, for the OpenAPI document. Rows are made by recovery_api.retention_rows."""

from __future__ import annotations

from rest_framework import serializers

from recovery_api.domain.retention import Piece
from recovery_api.domain.words import words
from recovery_api.serializers.members import Moment, WideField, maybe


class PlanEvidence(serializers.Serializer):
    uri = serializers.CharField(allow_blank=True)
    digest = serializers.CharField(allow_blank=True)
    gone_at = maybe(Moment, help_text="Since when its parts are gone, by age; figures and digest stay.")


class EvidenceShape(PlanEvidence):
    rows = WideField()


class PinShape(serializers.Serializer):
    piece = serializers.ChoiceField(words(Piece))
    id = serializers.UUIDField()
    ended_at = Moment()
    says = serializers.CharField(help_text="What rests on its parts.")


class RetentionShape(serializers.Serializer):
    pipeline = serializers.CharField()
    evidence_days = WideField()
    records_days = WideField()
    history_days = WideField()
    kept = WideField(help_text="Audits, plans and image audits with parts.")
    pinned = WideField(help_text="Those of them that stay whatever their age.")
    gone = WideField(help_text="Those whose parts are gone.")
    last_gone_at = maybe(Moment)
    settled_gone = WideField(help_text="Settled items of the ledger that went by age; their count and sums stay.")
    pins = PinShape(many=True)
