"""A form of yesterday: somebody changed meanwhile what it changes. Nothing is saved; what was entered is kept, beside what is there now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest

from recovery_api.selectors.versions import Versioned, changed_last


def version_read(request: HttpRequest) -> frozenset[str] | None:
    """The version that the posted form was opened with. None: the form names none, and whoever saves last wins."""
    given = request.POST.get("version", "")
    return frozenset([given]) if given else None


def overtaken(one: Versioned, now: Mapping[str, str], entered: Mapping[str, str]) -> dict[str, Any]:
    """For the page: who changed it last, and where what is there now differs from what was entered, by field."""
    names = dict.fromkeys([*now, *entered])
    rows = [(name, now.get(name, ""), entered.get(name, "")) for name in names]
    return {"overtaken": {"last": changed_last(one), "rows": [row for row in rows if row[1] != row[2]]}}
