"""Words and numbers of an incident's pages. `{% load incident %}`, beside `{% load fencepost %}`.

{{ group|group_says }}   {{ group|group_means }}   {{ digest|digest }}   {{ began|until:ended }}
{{ condition|standing }}   {{ progress|progress_says }}
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from dashboard.templatetags.fencepost import absolute, duration, number
from recovery_api.domain.findings import finding_means
from recovery_api.domain.frontiers import SINGLE_LANE

register = template.Library()

STANDINGS: dict[bool | None, str] = {True: "holds", False: "fails", None: "unknown"}


@register.filter
def group_says(group: Mapping[str, Any]) -> str:
    """A group's heading: how many of what, in how many ranges."""
    cause = f", {group['cause']}" if group["cause"] else ", altered at the sink" if group.get("is_altered") else ""
    acknowledged = ", acknowledged" if group["is_acknowledged"] else ""
    lane = f" in lane {group['lane']}" if group["lane"] != SINGLE_LANE else ""
    runs = "1 range" if group["runs_count"] == "1" else f"{number(group['runs_count'])} ranges"
    return f"{number(group['count'])} {group['finding']}{cause}{acknowledged}{lane}, in {runs}"


@register.filter
def group_means(group: Mapping[str, Any]) -> str:
    return finding_means(
        group["finding"], group["cause"], bool(group["is_acknowledged"]), bool(group.get("is_altered"))
    )


@register.filter
def runs_more(group: Mapping[str, Any], shown: int) -> str:
    """How many ranges are not among the first `shown`."""
    return number(int(group["runs_count"]) - shown)


@register.filter
def digest(text: str | None) -> SafeString | str:
    """A digest's first letters, whole on hover and in its page. None: that side holds nothing."""
    if not text:
        return format_html('<span class="quiet">{}</span>', "none")
    return format_html('<code title="{}">{}…</code>', text, text[:12])


@register.filter
def until(began: datetime, ended: datetime) -> str:
    return duration((ended - began).total_seconds())


@register.filter
def minutes(seconds: float) -> str:
    """About how long, in minutes: nobody plans an incident by the second.

    >>> minutes(7), minutes(130)
    ('1 minute', '3 minutes')
    """
    count = max(1, math.ceil(seconds / 60))
    return "1 minute" if count == 1 else f"{count:,} minutes"


@register.filter
def clock(at: datetime) -> SafeString:
    """The time of day in UTC, the whole moment on hover."""
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        at.isoformat(),
        at.strftime("%Y-%m-%d %H:%M:%S UTC"),
        at.strftime("%H:%M:%S"),
    )


@register.filter
def moment(text: str | None) -> SafeString | str:
    """A moment kept as text in ISO form."""
    return absolute(datetime.fromisoformat(text)) if text else "never"


@register.filter
def place_in_order(value: int) -> str:
    """A row's number counted from 1."""
    return number(value + 1)


@register.filter
def last_number(rows: Sequence[Mapping[str, Any]]) -> str:
    return number(rows[-1]["number"] + 1)


@register.filter
def standing(holds: bool | None) -> str:
    """A condition's word: holds, fails, or unknown, which is never taken for yes."""
    return STANDINGS[holds]


@register.filter
def percent(progress: Mapping[str, Any] | None) -> int | None:
    """How far a step is, for a progress bar. None: it cannot be told."""
    if not progress or not progress.get("total") or progress.get("done") is None:
        return None
    return max(0, min(100, int(100 * int(progress["done"]) / int(progress["total"]))))


@register.filter
def progress_says(progress: Mapping[str, Any] | None) -> str:
    """Step, counts and rate of work that runs: `reading both ends: 3 of 8 ranges, 2.1 a second`."""
    if not progress:
        return "No step has been said yet."
    said = str(progress.get("step", "working"))
    if progress.get("done") is not None and progress.get("total"):
        said += f": {number(progress['done'])} of {number(progress['total'])} {progress.get('unit', '')}".rstrip()
    if progress.get("rate_per_second"):
        said += f", {progress['rate_per_second']:,} a second"
    return said + (f" ({progress['says']})" if progress.get("says") else "")
