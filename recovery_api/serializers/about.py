"""What answers about people, tokens, kinds and the API itself look like, for the OpenAPI document."""

from __future__ import annotations

from rest_framework import serializers

from recovery_api.presets import Answer
from recovery_api.serializers.members import Anything, Moment, WideField, maybe, texts, things


class TokenShape(serializers.Serializer):
    token_id = serializers.UUIDField()
    name = serializers.CharField()
    person = serializers.CharField()
    roles = texts("The token's limit; it never gives more than the person has.")
    state = serializers.ChoiceField(["standing", "expired", "revoked"])
    begins_with = serializers.CharField(help_text="The first characters, to tell tokens apart.")
    created_at = Moment()
    created_by = serializers.CharField()
    expires_at = Moment()
    last_used_at = maybe(Moment, help_text="True to a minute; null: never.")
    revoked_at = maybe(Moment)
    revoked_by = maybe(serializers.CharField)


class NewTokenShape(TokenShape):
    token = maybe(serializers.CharField, help_text="Shown once, here. Only its hash is kept; a replay gives null.")


class EndedShape(serializers.Serializer):
    ended = WideField(help_text="How many stood, and stand no more.")


class PersonShape(serializers.Serializer):
    name = serializers.CharField()
    roles = texts("With this sign-in or token.")
    permissions = texts()
    token = maybe(TokenShape)


class KindShape(serializers.Serializer):
    name = serializers.CharField()
    end = serializers.ChoiceField(["source", "sink"])
    label = serializers.CharField(help_text="What pages call it.")
    says = serializers.CharField()
    shows = texts("What its connection test shows.")
    example = Anything(help_text="Options that describe one.")
    installs = maybe(serializers.CharField, help_text="What is installed for it; null: nothing.")
    archetype = maybe(serializers.CharField)
    options = things("name, says, type, default, is_required, choices, minimum, maximum.")


class PresetShape(serializers.Serializer):
    name = serializers.CharField()
    library = serializers.CharField()
    end = serializers.ChoiceField(["source", "sink"])
    kind = serializers.CharField()
    answer = serializers.ChoiceField([answer.value for answer in Answer])
    says = serializers.CharField()
    may_say = serializers.CharField()
    advice = serializers.CharField(allow_blank=True)
    options = Anything(help_text="What it fills where it is left out.")
    added = maybe(serializers.CharField, help_text="The ordered column that the library's table lacks.")


class ProblemKindShape(serializers.Serializer):
    code = serializers.CharField()
    status = serializers.IntegerField()
    title = serializers.CharField()
    type = serializers.CharField()


class WhereShape(serializers.Serializer):
    """What there is, by name."""

    version = serializers.CharField()
    addresses = serializers.DictField(child=serializers.CharField())
