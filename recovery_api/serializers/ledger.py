"""What the ledger's answers look like, for the OpenAPI document. Rows are made by recovery_api.ledger_rows."""

from __future__ import annotations

from rest_framework import serializers

from recovery_api.models.ledger import ITEM_WORDS, SETTLED_WORDS
from recovery_api.serializers.members import Moment, WideField, maybe


class ItemShape(serializers.Serializer):
    pipeline = serializers.CharField()
    lane = serializers.CharField()
    coordinate = serializers.CharField()
    word = serializers.ChoiceField(ITEM_WORDS)
    cause = maybe(serializers.CharField)
    means = serializers.CharField()
    key = maybe(serializers.CharField, help_text="Where the reading brought it.")
    event_id = maybe(serializers.CharField, help_text="Of an owed event, where the source has one.")
    committed_at = maybe(Moment, help_text="Of an owed event, where the source has it.")
    is_acknowledged = serializers.BooleanField()
    is_content_gone = serializers.BooleanField(help_text="The source does not hold its row any more.")
    accepted_count = maybe(WideField)
    first_seen_at = Moment()
    first_audit = serializers.UUIDField()
    last_seen_at = Moment()
    last_audit = serializers.UUIDField()
    settled_by = maybe(serializers.ChoiceField, choices=SETTLED_WORDS)
    settled_at = maybe(Moment)


class LedgerLaneShape(serializers.Serializer):
    pipeline = serializers.CharField()
    lane = serializers.CharField()
    seen_to = maybe(serializers.CharField, help_text="Everything at or below was judged, but for what is unknown.")
    unknown_above = maybe(serializers.CharField)
    unknown_below = maybe(serializers.CharField, help_text="Nobody saw what was committed below; null: there is none.")
    unjustifiable = WideField(help_text="Acceptances that are not shown to be committed.")
    is_whole = serializers.BooleanField(help_text="false: more is open than is listed.")
    audit = serializers.UUIDField()
    read_at = Moment()
    nothing_owed_below = maybe(serializers.CharField, help_text="As somebody decided.")
    decided_by = maybe(serializers.CharField)
    decided_at = maybe(Moment)
    decided_because = maybe(serializers.CharField)
