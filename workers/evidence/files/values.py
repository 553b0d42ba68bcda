"""Values as change logs write them, from the type that their schema (or the caller) names to one spelling.

The law: exact, or left as it stands. A decimal is a number and never a float; an instant is read by its own unit and
never by a guess; bytes are `\\x` and hex digits, as PostgreSQL prints them. Source: Debezium's documentation, "Data type
mappings"; Kafka Connect's logical types.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from workers.evidence.canonical import Number

_EPOCH = datetime(1970, 1, 1)
_INSTANT = re.compile(r"(\d{4,}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?\s*(Z|[+-]\d\d(?::?\d\d)?)?", re.ASCII)
PER_SECOND = {"millis": 1000, "micros": 1_000_000, "nanos": 1_000_000_000}


class BadValue(ValueError):
    """A value that is not of the type that was named."""


def decimal_of(value: Any, scale: int) -> Any:
    """The number that base64 of a big-endian two's complement spells, at this scale; numbers and texts as they are.

    >>> [str(decimal_of(text, 2)) for text in ("AeJA", "/h3A", "/w==", "gA==", "AA==")]
    ['1234.56', '-1234.56', '-0.01', '-1.28', '0.00']
    """
    if value is None or isinstance(value, int | float | Decimal | Number):
        return value
    if not isinstance(value, str):
        raise BadValue(f"{value!r} is no decimal")
    try:
        raw = base64.b64decode(value, validate=True)
    except binascii.Error:
        raise BadValue(f"{value[:40]!r} is no decimal in base64") from None
    return Number(_scaled(int.from_bytes(raw, "big", signed=True), scale))


def number_of(value: Any) -> Any:
    """A number that may be written as text.

    >>> str(number_of("1.280"))
    '1.280'
    """
    if not isinstance(value, str) or isinstance(value, Number):
        return value
    if not re.fullmatch(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", value, re.ASCII):
        raise BadValue(f"{value[:40]!r} is no number")
    return Number(value)


def _scaled(unscaled: int, scale: int) -> str:
    if scale <= 0:
        return str(unscaled * 10**-scale)
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    return f"{'-' if unscaled < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


def variable_decimal(value: Any) -> Any:
    """Debezium's VariableScaleDecimal.

    >>> str(variable_decimal({"scale": -3, "value": "AQ=="}))
    '1000'
    """
    if not isinstance(value, dict) or not {"scale", "value"} <= value.keys():
        raise BadValue(f"{value!r} is no decimal with its scale")
    return decimal_of(value["value"], int(value["scale"]))


def bytes_of(value: Any) -> Any:
    """Bytes in PostgreSQL's text form, from base64 or from that form itself.

    >>> bytes_of("3q2+7w=="), bytes_of("\\\\xDEADBEEF")
    ('\\\\xdeadbeef', '\\\\xdeadbeef')
    """
    if value is None:
        return None
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if not isinstance(value, str):
        raise BadValue(f"{value!r} are no bytes")
    if re.fullmatch(r"\\x([0-9a-fA-F]{2})*", value):
        return value.lower()
    try:
        return "\\x" + base64.b64decode(value, validate=True).hex()
    except binascii.Error as error:
        raise BadValue(f"{value[:40]!r} is no base64") from error


def instant_of(value: Any, unit: str) -> Any:
    """An instant in ISO 8601, UTC, from a count since 1970 in this unit, or from a text.

    >>> instant_of(1772964930123456, "micros"), instant_of(1772964930123, "millis")
    ('2026-03-08T10:15:30.123456Z', '2026-03-08T10:15:30.123Z')
    """
    if value is None:
        return None
    if isinstance(value, str) and not isinstance(value, Number):
        return instant_text(value)
    count = _whole(value)
    seconds, rest = divmod(count, PER_SECOND[unit])
    width = len(str(PER_SECOND[unit])) - 1
    fraction = str(rest).rjust(width, "0").rstrip("0")
    try:
        moment = _EPOCH + timedelta(seconds=seconds)
    except OverflowError as error:
        raise BadValue(f"{count} {unit} lie outside of the calendar") from error
    return f"{moment.isoformat()}{f'.{fraction}' if fraction else ''}Z"


def instant_text(text: str) -> str:
    """The same spelling from `2026-03-08 10:15:30.120+00` and its like; a text without a zone is taken for UTC.

    >>> instant_text("2026-03-08 12:15:30.120+02")
    '2026-03-08T10:15:30.12Z'
    """
    match = _INSTANT.fullmatch(text.strip())
    if not match:
        raise BadValue(f"{text[:40]!r} is no instant")
    day, time, fraction, zone = match.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{time}")
        if zone and zone != "Z":
            zone = zone if ":" in zone or len(zone) == 3 else f"{zone[:3]}:{zone[3:]}"
            shift = datetime.fromisoformat(f"2000-01-01T00:00:00{zone if ':' in zone else zone + ':00'}")
            moment = (moment.replace(tzinfo=shift.tzinfo)).astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError) as error:
        raise BadValue(f"{text[:40]!r} is no instant") from error
    fraction = (fraction or "").rstrip("0")
    return f"{moment.isoformat()}{f'.{fraction}' if fraction else ''}Z"


def date_of(value: Any) -> Any:
    """A day in ISO 8601 from days since 1970, or as it stands."""
    if value is None or (isinstance(value, str) and not isinstance(value, Number)):
        return value
    try:
        return (date(1970, 1, 1) + timedelta(days=_whole(value))).isoformat()
    except OverflowError as error:
        raise BadValue(f"{value} days lie outside of the calendar") from error


def clock_of(value: Any, unit: str) -> Any:
    """A time of day from a count since midnight."""
    if value is None:
        return None
    seconds, rest = divmod(_whole(value), PER_SECOND[unit])
    width = len(str(PER_SECOND[unit])) - 1
    fraction = str(rest).rjust(width, "0").rstrip("0")
    hours, minutes = divmod(seconds // 60, 60)
    return f"{hours:02}:{minutes:02}:{seconds % 60:02}{f'.{fraction}' if fraction else ''}"


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | Number):
        raise BadValue(f"{value!r} is no whole number")
    try:
        return int(value)
    except ValueError as error:
        raise BadValue(f"{value!r} is no whole number") from error


def typed(value: Any, kind: str, parse: Callable[[str], Any]) -> Any:
    """A value by the type that the caller declared. Raises: BadValue."""
    word, _, detail = kind.partition(":")
    if word == "decimal":
        if isinstance(value, dict):
            return variable_decimal(value)
        is_base64 = detail and isinstance(value, str) and "." not in value
        return decimal_of(value, int(detail)) if is_base64 else number_of(value)
    if word == "bytes":
        return bytes_of(value)
    if word in PER_SECOND:
        return instant_of(value, word)
    if word == "timestamp":
        return None if value is None else instant_text(str(value))
    if word == "date":
        return date_of(value)
    if word == "json" and isinstance(value, str):
        try:
            return parse(value)
        except ValueError as error:
            raise BadValue(f"{value[:40]!r} is no JSON") from error
    return value


_BY_NAME: dict[str, Callable[[Any], Any]] = {
    "io.debezium.data.VariableScaleDecimal": variable_decimal,
    "io.debezium.time.Timestamp": lambda value: instant_of(value, "millis"),
    "io.debezium.time.MicroTimestamp": lambda value: instant_of(value, "micros"),
    "io.debezium.time.NanoTimestamp": lambda value: instant_of(value, "nanos"),
    "io.debezium.time.ZonedTimestamp": lambda value: value if value is None else instant_text(str(value)),
    "io.debezium.time.Date": date_of,
    "io.debezium.time.Time": lambda value: clock_of(value, "millis"),
    "io.debezium.time.MicroTime": lambda value: clock_of(value, "micros"),
    "io.debezium.time.NanoTime": lambda value: clock_of(value, "nanos"),
    "org.apache.kafka.connect.data.Timestamp": lambda value: instant_of(value, "millis"),
    "org.apache.kafka.connect.data.Date": date_of,
    "org.apache.kafka.connect.data.Time": lambda value: clock_of(value, "millis"),
}


def schema_decode(value: Any, schema: Mapping[str, Any], parse: Callable[[str], Any]) -> Any:
    """A value by its Connect schema (`type`, `name`, `parameters`, `fields`, `items`). Raises: BadValue."""
    if value is None:
        return None
    name, kind = schema.get("name"), schema.get("type")
    if name == "org.apache.kafka.connect.data.Decimal":
        return decimal_of(value, int((schema.get("parameters") or {}).get("scale", 0)))
    if name in _BY_NAME:
        return _BY_NAME[name](value)
    if name == "io.debezium.data.Json" and isinstance(value, str):
        return parse(value)
    if kind == "bytes":
        return bytes_of(value)
    if kind == "struct" and isinstance(value, dict):
        by_name = {field.get("field"): field for field in schema.get("fields") or ()}
        return {
            member: schema_decode(item, by_name[member], parse) if member in by_name else item
            for member, item in value.items()
        }
    if kind == "array" and isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [schema_decode(item, schema["items"], parse) for item in value]
    return value
