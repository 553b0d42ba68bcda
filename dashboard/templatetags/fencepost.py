"""The components every page is made of. `{% load fencepost %}`.

{% status "exactly_once" %}                       a word with a shape
{% coordinate "7001:42" %}                        monospaced, copied by a click
{% contents %}…{% endcontents %}                  a long page, with links to its headings first
{{ moment|ago }}   {{ count|number }}   {{ seconds|duration }}
{% command "audit" pipeline.name "--wait" %}      the equivalent command line, copied by a button
{% health %}                                      what was seen of worker, Spark and broker
{% may "pipeline-audit" "POST" as allowed %}      allowed.is_allowed, allowed.says
{% post "pipeline-audit" "Audit now" pipeline.name kind="primary" unless="why it cannot be done now" %}
{% go "pipeline-edit" "Edit" pipeline.name %}     a link that looks like a button, or says who may
{% table "Recent audits" %}{% columns "When" "Verdict" "#Lost" %}<tbody>…{% endtable %}
{% facts rows %}                                  rows: [(label, value)]
{% sentences audit.weaknesses %}                  a list, an item for each sentence
{% problem "Title" "What happened." "What to do next." tone="bad" %}
{% empty "No audits yet" "What to do." %}
{% sample report.sample %}                        rows that a connection test read, contents masked
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from html import unescape
from typing import Any

from django import template
from django.template.context import RequestContext
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join, strip_tags
from django.utils.safestring import SafeString

from dashboard.access import Allowed, actor
from dashboard.access import may as person_may
from recovery_api.domain import actors
from recovery_api.domain.commands import command_line
from recovery_api.domain.frontiers import SINGLE_LANE
from recovery_api.domain.looks import look_of
from recovery_api.domain.outcomes import OUTCOMES
from recovery_api.domain.samples import report_for
from recovery_api.selectors.alerts import OpenCount, open_count
from recovery_api.selectors.health import parts_seen

register = template.Library()


HEADING = re.compile(r'<h2 id="([^"]+)"[^>]*>(.*?)</h2>', re.DOTALL)
FEWEST_HEADINGS = 5
"""A page with fewer is seen at a glance."""
LONG_CHARACTERS = 32
"""A status longer than this many characters may wrap, so that it fits on a narrow screen."""


@register.inclusion_tag("components/status.html")
def status(word: str | None, label: str = "") -> dict[str, Any]:
    """A status as a word and a shape; a word that is not known is shown as it stands, never as good."""
    look = look_of(word)
    says = label or look.says
    return {"label": says, "tone": look.tone, "shape": look.shape, "is_long": len(says) > LONG_CHARACTERS}


@register.inclusion_tag("components/coordinate.html")
def coordinate(text: Any, label: str = "") -> dict[str, Any]:
    """A coordinate, digest or id, to be copied whole. None: nothing known."""
    return {"text": "" if text is None else str(text), "label": label}


@register.inclusion_tag("components/command.html")
def command(*words: Any, label: str = "Same by command line") -> dict[str, Any]:
    """`manage.py` with these words, quoted for a shell; empty words are left out."""
    return {"line": command_line(*words), "label": label}


@register.inclusion_tag("components/facts.html")
def facts(rows: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {"rows": list(rows)}


@register.inclusion_tag("components/sentences.html")
def sentences(rows: Iterable[str] | None) -> dict[str, Any]:
    return {"rows": list(rows or ())}


@register.inclusion_tag("components/problem.html")
def problem(title: str, says: str = "", remedy: str = "", tone: str = "bad") -> dict[str, Any]:
    shape = {"bad": "octagon", "warn": "triangle", "unsure": "question", "good": "check"}.get(tone, "minus")
    return {"title": title, "says": says, "remedy": remedy, "tone": tone, "shape": shape}


@register.inclusion_tag("components/empty.html")
def empty(title: str, says: str = "") -> dict[str, Any]:
    return {"title": title, "says": says}


@register.inclusion_tag("components/sample.html", takes_context=True)
def sample(context: RequestContext, found: Mapping[str, Any] | None) -> dict[str, Any]:
    """The rows of a test's sample, a cell a column. A content is masked unless its row has `content_start`."""
    shown = found or {}
    if not any("content_start" in row for row in shown.get("rows", ())):  # those were asked for, and answered, just now
        shown = (report_for({"sample": found}, actor(context["request"])) or {})["sample"] or {}
    columns = list(shown.get("columns", ()))
    rows = [[_cell(column, row) for column in columns] for row in shown.get("rows", ())]
    return {
        "request": context["request"],
        "csrf_token": context.get("csrf_token"),
        "sample": shown,
        "columns": columns,
        "rows": rows,
        "caption": f"Sample rows, as mapped: {shown.get('says', '').rstrip('.')}",
        "has_masked": any(cell["is_masked"] for row in rows for cell in row),
    }


def _cell(column: str, row: Mapping[str, Any]) -> dict[str, Any]:
    cell: dict[str, Any] = {
        "column": column,
        "text": row.get(column),
        "is_code": column not in ("op", "committed_at", "accepted_at"),
        "is_wide": column in ("event_id", "key", "content", "digest", "payload_digest"),
        "bytes": None,
        "is_masked": False,
    }
    if column == "content":
        size = row.get("content_bytes")
        is_masked = size is not None and "content_start" not in row
        cell |= {"text": row.get("content_start"), "bytes": size, "is_masked": is_masked}
    return cell


@register.simple_block_tag
def table(content: str, caption: str, is_caption_hidden: bool = False, kind: str = "") -> SafeString:
    """A table with its caption, in a region that scrolls by itself on a narrow screen and by keyboard."""
    hidden = "hidden-visually" if is_caption_hidden else ""
    return format_html(
        '<div class="table-scroll" role="region" aria-label="{}" tabindex="0"><table class="{}">'
        '<caption class="{}">{}</caption>{}</table></div>',
        caption,
        kind,
        hidden,
        caption,
        SafeString(content),  # nosec B703 # its parts were escaped by the template
    )


@register.simple_block_tag
def contents(content: str) -> SafeString:
    """The content, and before it links to its headings: those of the second level that have an id."""
    headings = [(name, unescape(strip_tags(title)).strip()) for name, title in HEADING.findall(content)]
    if len(headings) < FEWEST_HEADINGS:
        return SafeString(content)  # nosec B703 # its parts were escaped by the template
    links = format_html_join("", '<li><a href="#{}">{}</a></li>', headings)
    return format_html(
        '<nav aria-label="On this page"><details class="contents"><summary>On this page</summary><ul>{}</ul></details></nav>{}',
        links,
        SafeString(content),  # nosec B703 # its parts were escaped by the template
    )


@register.inclusion_tag("components/columns.html")
def columns(*names: str) -> dict[str, Any]:
    """A table's head. A name that begins with `#` stands over numbers."""
    return {"columns": [{"name": name.removeprefix("#"), "is_number": name.startswith("#")} for name in names]}


@register.simple_tag(takes_context=True)
def may(context: RequestContext, route: str, method: str = "GET") -> Allowed:
    """Whether whoever looks may use a route."""
    return person_may(context["request"], route, method)


@register.simple_tag(takes_context=True)
def open_alerts(context: RequestContext) -> OpenCount | None:
    """How many alerts are open, for the bar. None: whoever looks may not see them."""
    if not person_may(context["request"], "alert-list", "GET"):
        return None
    return open_count(timezone.now())


@register.inclusion_tag("components/health.html", takes_context=True)
def health(context: RequestContext) -> dict[str, Any]:
    """What was seen of worker, Spark and broker, for the bar: what is away first, then what nobody looks at."""
    if not person_may(context["request"], "overview", "GET"):
        return {"parts": ()}
    parts = parts_seen()
    away = [part.name for part in parts if part.is_there is False]
    unseen = [part.name for part in parts if part.is_there is None]
    if away:
        says, tone, shape = f"missing: {', '.join(away)}", "bad", "octagon"
    elif unseen:
        says, tone, shape = f"{' and '.join(unseen)} not watched", "unsure", "question"
    else:
        says, tone, shape = "all parts seen", "calm", "check"
    shown = [(part, {True: "seen", False: "away", None: "unwatched"}[part.is_there]) for part in parts]
    return {"parts": shown, "says": says, "tone": tone, "shape": shape}


@register.inclusion_tag("components/post.html", takes_context=True)
def post(
    context: RequestContext,
    route: str,
    label: str,
    *args: Any,
    kind: str = "",
    unless: str = "",
    name: str = "",
    value: str = "",
) -> dict[str, Any]:
    """A button that posts to `route`, or the same button disabled with its reason. `unless`: why it cannot be now."""
    allowed = person_may(context["request"], route, "POST")
    return {
        "url": reverse(route, args=args),
        "label": label,
        "kind": kind,
        "reason": allowed.says or unless,
        "name": name,
        "value": value,
        "csrf_token": context.get("csrf_token"),
    }


@register.inclusion_tag("components/go.html", takes_context=True)
def go(
    context: RequestContext, route: str, label: str, *args: Any, kind: str = "", unless: str = "", query: str = ""
) -> dict[str, Any]:
    """A link to `route` that looks like a button, or the same disabled with its reason."""
    allowed = person_may(context["request"], route, "GET")
    url = reverse(route, args=args) + (f"?{query}" if query else "")
    return {"url": url, "label": label, "kind": kind, "reason": allowed.says or unless}


@register.filter
def number(value: Any) -> str:
    """Thousands apart: 1,234,567. Numbers that are texts (over 2^53) too; anything else as it stands.

    >>> number("18446744073709551615")
    '18,446,744,073,709,551,615'
    """
    if value is None or isinstance(value, bool):
        return "not known" if value is None else str(value)
    try:
        return f"{int(value):,}"
    except (TypeError, ValueError):
        return str(value)


@register.filter
def fact(value: Any) -> str:
    """A fact of a connection test on one line: lists and objects too, in words.

    >>> fact({"kind": "target", "columns": {"cents": "cents"}, "is_ours": True, "rows": 1220})
    'kind: target, columns (cents: cents), is ours: yes, rows: 1,220'
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        parts = [
            (spaced(name), fact(part).removesuffix("."), part)
            for name, part in value.items()
            if part not in ("", None, {}, [])
        ]
        return ", ".join(
            f"{name} ({said})" if isinstance(part, dict) else f"{name}: {said}" for name, said, part in parts
        )
    if isinstance(value, list | tuple):
        return ", ".join(fact(part) for part in value) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)


@register.filter
def is_single_lane(lane: Any) -> bool:
    """Whether it is the lane of a source that has one, which nobody has to be told."""
    return str(lane) == SINGLE_LANE


@register.filter
def spaced(word: Any) -> str:
    """A word of the product as a person reads it: `exactly_once` is exactly once at f."""
    row = OUTCOMES.get(str(word))
    return row.words if row else str(word).replace("_", " ")


@register.filter
def by(actor: Any) -> SafeString | str:
    """Who did it, at the end of a sentence: by ada, or by command, as ada (not signed in)."""
    return _exact(str(actor), actors.by(str(actor)))


@register.filter
def who(actor: Any) -> SafeString | str:
    """Who did it: a person's name, or a worker on its host, with its exact name on hover."""
    return _exact(str(actor), actors.process_says(str(actor)) or str(actor))


def _exact(actor: str, says: str) -> SafeString | str:
    if actors.process_says(actor) is None:
        return says
    return format_html('<span title="{}">{}</span>', actor, says)


@register.filter
def ago(moment: datetime | None) -> SafeString | str:
    """How long ago, with the moment itself in UTC beside it, whole on hover and for machines."""
    if moment is None:
        return "never"
    now = timezone.now()
    return format_html(
        '<time datetime="{}" title="{}">{} <span class="exact">{}</span></time>',
        moment.isoformat(),
        moment.strftime("%Y-%m-%d %H:%M:%S UTC"),
        since(moment, now),
        exact(moment, now),
    )


@register.filter
def absolute(moment: datetime | None) -> SafeString | str:
    if moment is None:
        return "never"
    return format_html('<time datetime="{}">{}</time>', moment.isoformat(), moment.strftime("%Y-%m-%d %H:%M:%S UTC"))


@register.filter
def duration(seconds: float | None) -> str:
    """A length of time in its two largest units.

    >>> duration(93784)
    '1 d 2 h'
    """
    if seconds is None:
        return "not known"
    left, parts = int(seconds), []
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
        if left >= size:
            parts.append(f"{left // size} {unit}")
            left %= size
    return " ".join(parts[:2]) or "under 1 s"


def exact(moment: datetime, now: datetime) -> str:
    """The moment in UTC: the time of day where it is of today, the day and the minute else.

    >>> from datetime import timedelta
    >>> now = datetime(2026, 6, 1, 3, 0, tzinfo=UTC)
    >>> exact(now - timedelta(minutes=5), now), exact(now - timedelta(hours=5), now)
    ('02:55:00', '05-31 22:00')
    >>> exact(now - timedelta(days=365), now)
    '2025-06-01 03:00'
    """
    at, today = moment.astimezone(UTC), now.astimezone(UTC)
    if at.date() == today.date():
        return f"{at:%H:%M:%S}"
    return f"{at:%m-%d %H:%M}" if at.year == today.year else f"{at:%Y-%m-%d %H:%M}"


def since(moment: datetime, now: datetime) -> str:
    """
    >>> from datetime import timedelta
    >>> then = datetime(2026, 6, 1)
    >>> since(then, then + timedelta(minutes=5)), since(then, then)
    ('5 min ago', 'just now')
    """
    seconds = int((now - moment).total_seconds())
    if seconds < 0:
        return f"in {duration(-seconds)}"
    if seconds < 5:
        return "just now"
    return f"{duration(seconds).split(' ', 2)[0]} {duration(seconds).split(' ', 2)[1]} ago"
