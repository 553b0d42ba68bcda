"""What a request may contain, declared once: strict types, every name known, and the error names the field.

DRF's own fields turn 5 into "5" and "yes" into true; these do not. What a value must be beyond its type is the services'
business: they answer for pages and commands, too.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from rest_framework import serializers

from recovery_api.exceptions import BadRequest

TEXT_LIMIT = 2000
NAME_LIMIT = 200
SAYS = {
    "required": "is missing",
    "null": "is null",
    "blank": "is empty",
    "empty": "is empty",
    "max_length": "is longer than {max_length} characters",
}


class Text(serializers.CharField):
    """A JSON string; never a number that looks like one. Kept as it was sent, spaces included."""

    default_error_messages = {"invalid": "is not a text"}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"trim_whitespace": False, "max_length": TEXT_LIMIT, **kwargs})

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return str(data)


class Name(Text):
    """The name of a source, a sink or a pipeline. `services.ends.name_check` decides; this documents it."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"max_length": NAME_LIMIT, **kwargs})


class Flag(serializers.BooleanField):
    """true or false, nothing that stands for them."""

    default_error_messages = {"invalid": "is neither true nor false"}

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid")
        return bool(data)


class FlagWord(serializers.BooleanField):
    """A flag in a query: the words true and false."""

    default_error_messages = {"invalid": "is neither true nor false"}

    def to_internal_value(self, data: Any) -> bool:
        if data not in ("true", "false"):
            self.fail("invalid")
        return bool(data == "true")


class Whole(serializers.IntegerField):
    """A whole JSON number; not 1.0, not "1"."""

    default_error_messages = {
        "invalid": "is not a whole number",
        "min_value": "is below {min_value}",
        "max_value": "is above {max_value}",
    }

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return int(data)


class WholeWord(Whole):
    """A whole number in a query: plain digits."""

    def to_internal_value(self, data: Any) -> int:
        digits = str(data)
        if not (digits.isascii() and digits.removeprefix("-").isdigit() and len(digits) <= 20):
            self.fail("invalid")
        return int(digits)


class Choice(serializers.ChoiceField):
    """One of a few words; another one is answered with the nearest."""

    def to_internal_value(self, data: Any) -> str:
        if isinstance(data, str) and data in self.choices:
            return str(data)
        words = ", ".join(str(word) for word in self.choices)
        raise serializers.ValidationError(
            f"is not one of its values. {nearest_says(str(data), self.choices)} One of: {words}".replace("  ", " "),
            code="choice",
        )


class TextList(serializers.ListField):
    """A list of texts."""

    child = Text()
    default_error_messages = {"not_a_list": "is not a list"}


class OptionsField(serializers.DictField):
    """The options of a kind, by name. Each kind declares its own; `GET /api/v1/kinds` lists them."""

    default_error_messages = {"not_a_dict": "is not an object"}


class _Strict(serializers.Serializer):
    """Members that are declared, and no other."""

    WHAT = "field"
    UNKNOWN = "unknown_field"

    @classmethod
    def check(cls, data: Mapping[str, Any]) -> dict[str, Any]:
        """The validated members. Raises: BadRequest naming the first member that is unknown or cannot be used."""
        known = list(cls().fields)
        for name in data:
            if name not in known:
                says = nearest_says(name, known)
                listed = ", ".join(known) or "none"
                raise BadRequest(
                    name, f"no such {cls.WHAT}", f"{says} Known: {listed}.".strip(), cls.UNKNOWN, known=known
                )
        given = cls(data=data)
        if not given.is_valid():
            found = list(_flat(given.errors))
            raise BadRequest(*found[0], errors=[{"field": one, "problem": problem} for one, problem in found])
        return dict(given.validated_data)


class Body(_Strict):
    """The body of a request."""

    @classmethod
    def read(cls, data: Any) -> dict[str, Any]:
        """Raises: BadRequest."""
        if not isinstance(data, Mapping):
            raise BadRequest("body", "is not an object", "Send one JSON object.", "malformed")
        return cls.check(data)


class Query(_Strict):
    """The parameters of a request's address. Each is given once, and empty ones are none."""

    WHAT = "parameter"
    UNKNOWN = "unknown_parameter"

    @classmethod
    def read(cls, parameters: Any) -> dict[str, Any]:
        """`parameters` is a QueryDict. Raises: BadRequest."""
        given: dict[str, str] = {}
        for name, values in parameters.lists():
            if len(values) != 1:
                raise BadRequest(name, "is given more than once", "Give each parameter once.")
            text = values[0]
            if not is_storable(name) or not is_storable(text):
                raise BadRequest("query", "holds NUL or text that is not Unicode", "Send UTF-8, percent-encoded.")
            given[name] = text
        return cls.check(given)

    def get_fields(self) -> dict[str, Any]:
        return {name: _optional(field) for name, field in super().get_fields().items()}


def is_storable(text: str) -> bool:
    """Whether a text can be kept in PostgreSQL: no NUL, no half of a surrogate pair.

    >>> is_storable("größe"), is_storable("a" + chr(0)), is_storable(chr(0xD800))
    (True, False, False)
    """
    return "\x00" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def nearest_says(name: str, known: Iterable[Any]) -> str:
    """`Did you mean 'x'?`, or nothing."""
    nearest = difflib.get_close_matches(name, [str(one) for one in known], n=1)
    return f"Did you mean {nearest[0]!r}?" if nearest else ""


def _optional(field: Any) -> Any:
    field.required = False
    return field


def _flat(errors: Any, path: str = "") -> Iterable[tuple[str, str]]:
    """Every error as (field, problem), fields of fields with a dot."""
    if isinstance(errors, Mapping):
        for name, inner in errors.items():
            yield from _flat(inner, f"{path}.{name}" if path else str(name))
        return
    if isinstance(errors, list):
        for inner in errors:
            if isinstance(inner, Mapping | list):
                yield from _flat(inner, path)
            else:
                says = SAYS.get(inner.code, str(inner)) if inner.code != "max_length" else str(inner)
                yield path or "body", says.rstrip(".")
