"""One JSON object in, strictly: its size, its encoding, each name once, and nothing a database cannot keep."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from django.conf import settings
from rest_framework.parsers import BaseParser

from recovery_api.exceptions import Problem
from recovery_api.serializers.fields import is_storable

DEPTH_LIMIT = 50


class StrictJSONParser(BaseParser):
    """UTF-8 JSON. A member given twice, NaN, NUL and half a surrogate pair are refused, and where they stand is said."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        limit = settings.FENCEPOST_API_BODY_LIMIT_BYTES
        raw = stream.read(limit + 1)
        if len(raw) > limit:
            raise Problem("too_large", f"The body is larger than {limit} bytes.", limit_bytes=str(limit))
        try:
            found = json.loads(raw.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_constant)
        except UnicodeDecodeError as error:
            raise Problem("malformed", f"The body is not UTF-8: byte {error.start}.") from error
        except RecursionError as error:
            raise Problem("malformed", f"The body is nested deeper than {DEPTH_LIMIT} levels.") from error
        except ValueError as error:
            raise Problem("malformed", f"The body is not JSON: {error}.") from error
        _check(found, "", 0)
        return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise Problem("malformed", f"The member {name[:100]!r} is given twice.", field=name[:100])
        found[name] = value
    return found


def _no_constant(word: str) -> NoReturn:
    raise Problem("malformed", f"{word} is not JSON.")


def _check(value: Any, where: str, depth: int) -> None:
    if depth > DEPTH_LIMIT:
        raise Problem("malformed", f"The body is nested deeper than {DEPTH_LIMIT} levels.")
    if isinstance(value, dict):
        for name, inner in value.items():
            _check(name, where, depth)
            _check(inner, f"{where}.{name}" if where else name, depth + 1)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            _check(inner, f"{where}[{number}]", depth + 1)
    elif isinstance(value, str) and not is_storable(value):
        said = where if is_storable(where) else "a name"
        raise Problem("malformed", f"{said or 'The body'} holds NUL or half a surrogate pair.", field=said)
    elif isinstance(value, float) and value in (float("inf"), float("-inf")):
        raise Problem("malformed", f"{where or 'The body'} is a number beyond every float.", field=where)
