"""Members that many answers have, as the OpenAPI document describes them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

WIDE = {"type": "string", "pattern": r"^-?[0-9]+$", "description": "A 64-bit whole number, as text."}


@extend_schema_field(WIDE)
class WideField(serializers.CharField):
    """A whole number of up to 64 bits, as text."""


@extend_schema_field({"type": "object", "additionalProperties": WIDE})
class Counts(serializers.JSONField):
    """An object of whole numbers, each as text."""


@extend_schema_field({"type": "object", "additionalProperties": True})
class Anything(serializers.JSONField):
    """An object whose members depend on the case."""


def maybe(field: type[serializers.Field], **kwargs: Any) -> serializers.Field:
    return field(allow_null=True, **kwargs)


def texts(says: str = "") -> serializers.ListField:
    return serializers.ListField(child=serializers.CharField(), help_text=says)


def things(says: str = "") -> serializers.ListField:
    return serializers.ListField(child=Anything(), help_text=says)


Moment = serializers.DateTimeField
