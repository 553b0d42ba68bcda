"""Parts of addresses. A name is one segment, already decoded; what no registered name holds is no address at all."""

from __future__ import annotations

from django.urls import register_converter
from django.urls.converters import StringConverter


class NameConverter(StringConverter):
    """A name as one segment. No registered name holds what it refuses: it is answered with 404."""

    regex = r"[^/\x00-\x1f]{1,200}"


register_converter(NameConverter, "end_name")
