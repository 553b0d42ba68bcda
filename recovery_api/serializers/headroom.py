"""What headroom looks like, for the OpenAPI document."""

from __future__ import annotations

from rest_framework import serializers

from recovery_api.domain.headroom.design import Holds
from recovery_api.domain.headroom.live import Standing
from recovery_api.domain.headroom.terms import Forgets, Reach
from recovery_api.domain.words import words
from recovery_api.serializers.members import Moment, WideField, maybe, texts


class HeadroomShortShape(serializers.Serializer):
    headroom = serializers.ChoiceField(words(Standing))
    short = serializers.CharField()
    left_seconds = maybe(WideField, help_text="null: no limit, or none is known.")
    decide_by = maybe(Moment)
    is_bound = serializers.BooleanField(help_text="True: at most so much, because something is not known.")


class HeadroomTermShape(serializers.Serializer):
    forgets = serializers.ChoiceField(words(Forgets))
    headroom = serializers.ChoiceField(words(Standing))
    reach = serializers.ChoiceField(words(Reach))
    says = serializers.CharField()
    expires_at = maybe(Moment, help_text="The earliest moment at which evidence may be gone.")
    left_seconds = maybe(WideField)
    last_start = maybe(Moment)
    decide_by = maybe(Moment)
    is_bound = serializers.BooleanField()


class HeadroomPaceShape(serializers.Serializer):
    owed = WideField()
    growth_per_second = maybe(serializers.CharField, help_text="0 while the relay is seen to deliver.")
    arrivals_peak_per_second = maybe(serializers.CharField)
    arrivals_recent_per_second = maybe(serializers.CharField)
    is_delivering = serializers.BooleanField()
    redrive_per_second = maybe(serializers.CharField, help_text="The slowest recent one; null: none was seen.")
    overhead_seconds = maybe(WideField)
    is_overhead_drilled = serializers.BooleanField(
        help_text="No recovery showed it: a whole run of drills took so long."
    )
    says = texts("What of it is known, in sentences.")
    margin_seconds = maybe(WideField)
    operator_delay_seconds = maybe(WideField)
    missing = texts("What is neither declared nor was seen.")


class HeadroomEndShape(serializers.Serializer):
    """An end, as the last audit that looked saw it."""

    end = serializers.CharField(help_text="source, record or delivery.")
    read_at = Moment()
    clock_ahead_seconds = maybe(serializers.CharField, help_text="Of the control database's clock; null: not measured.")
    clock_error_seconds = maybe(
        serializers.CharField, help_text="By how much that may be wrong; all of it is taken off."
    )
    table_bytes = maybe(WideField)
    says = serializers.CharField()


class DesignStepShape(serializers.Serializer):
    name = serializers.CharField()
    seconds = maybe(WideField)


class DesignShape(serializers.Serializer):
    holds = serializers.ChoiceField(words(Holds))
    horizon_seconds = maybe(WideField, help_text="The shortest memory that is declared.")
    is_whole = serializers.BooleanField(help_text="Every memory is declared.")
    steps = DesignStepShape(many=True)
    spare_seconds = maybe(WideField)
    missing = texts("What to declare, or to measure.")


class DesignsShape(serializers.Serializer):
    declared = DesignShape()
    measured = DesignShape()


class HeadroomShape(serializers.Serializer):
    """How long a recovery may still wait. Anything but ok: do not count on it."""

    pipeline = serializers.CharField()
    headroom = serializers.ChoiceField(words(Standing))
    exit_code = serializers.IntegerField(help_text="As of the command.")
    says = serializers.CharField()
    now = Moment()
    as_of = maybe(Moment, help_text="When the record was last read; null: no audit has told anything.")
    left_seconds = maybe(WideField, help_text="Until the first memory may end; null: no limit, or none is known.")
    is_left_bound = serializers.BooleanField(help_text="At most so much.")
    last_start = maybe(Moment)
    decide_by = maybe(Moment)
    is_bound = serializers.BooleanField(help_text="The two moments are at most so late.")
    is_expired = serializers.BooleanField()
    is_hypothetical = serializers.BooleanField(help_text="Nothing is owed: it holds if the relay stopped now.")
    binds = maybe(serializers.CharField)
    anchor = maybe(Moment, help_text="From when on evidence is needed.")
    oldest_owed_at = maybe(Moment)
    certified_to = maybe(Moment)
    terms = HeadroomTermShape(many=True)
    pace = HeadroomPaceShape()
    ends = HeadroomEndShape(many=True)
    design = DesignsShape()
