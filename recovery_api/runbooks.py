"""Runbooks as they are kept and shown: files read, filled in, and made HTML that runs nothing.

Ours lie in docs/runbooks (FENCEPOST_RUNBOOKS); a team's own beside it, in the folder FENCEPOST_TEAM_RUNBOOKS, by the same
names. What a team writes may hold HTML: it is cleaned by nh3, so that no script, style or form of it reaches a reader.
No database is needed for any of this.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from pathlib import Path

import nh3
from django.conf import settings
from markdown_it import MarkdownIt
from markdown_it.token import Token

from recovery_api.domain.errors import BadFile, NotFound
from recovery_api.domain.runbooks import Runbook, filled_code, filled_text, runbook_names, runbook_parse
from recovery_api.serializers.fields import nearest_says

LARGEST_BYTES = 256 * 1024
TAGS = {
    *("h1", "h2", "h3", "h4", "p", "ul", "ol", "li", "strong", "em", "code", "pre", "blockquote", "br", "hr", "a"),
    *("table", "thead", "tbody", "tr", "th", "td", "del"),
}
SCHEMES = {"http", "https", "mailto"}
OURS = MarkdownIt("commonmark", {"html": False}).enable("table")
THEIRS = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def runbook_text(name: str) -> str:
    """Our Markdown of it, as it lies in the folder. Raises: NotFound, BadFile."""
    _known(name)
    found = _read(Path(settings.FENCEPOST_RUNBOOKS) / f"{name}.md")
    if found is None:
        remedy = "Set FENCEPOST_RUNBOOKS to the folder docs/runbooks of this release."
        raise NotFound(f"Runbook {name}", str(settings.FENCEPOST_RUNBOOKS), remedy)
    return found


def runbook_get(name: str) -> Runbook:
    """Raises: NotFound, BadFile."""
    return runbook_parse(name, runbook_text(name))


def team_text(name: str) -> str | None:
    """What a team keeps beside it; None: nothing. Raises: NotFound, BadFile."""
    _known(name)
    return _read(Path(settings.FENCEPOST_TEAM_RUNBOOKS) / f"{name}.md") if settings.FENCEPOST_TEAM_RUNBOOKS else None


def section_html(text: str, values: Mapping[str, str] | None = None) -> str:
    """Our Markdown as HTML, filled in. Values are texts and nothing else, whatever is in them."""
    tokens = OURS.parse(text)
    _fill(tokens, values or {})
    return _clean(OURS.renderer.render(tokens, OURS.options, {}))


def team_html(text: str) -> str:
    """A team's Markdown as HTML that runs nothing: no script, style, form or frame, no address but of the web or of mail."""
    return _clean(THEIRS.render(text))


def filled_markdown(text: str, values: Mapping[str, str]) -> str:
    """Markdown to be read as it is, filled in: code between backticks for a shell, the rest as prose."""
    parts = text.split("`")
    return "`".join(
        filled_code(part, values) if number % 2 else filled_text(part, values) for number, part in enumerate(parts)
    )


def runbook_page(name: str, values: Mapping[str, str] | None = None) -> str:
    """One whole page of HTML that needs nothing but itself: for an export, read when Fencepost is down."""
    text, team = runbook_text(name), team_text(name)
    own = f"<hr><h2>Your team's own</h2>{team_html(team)}" if team else ""
    return page_html(runbook_get(name).title, section_html(text, values) + own)


def page_html(title: str, body: str) -> str:
    """`body`, cleaned already, as a page to be kept and printed."""
    style = (
        "body{max-width:46rem;margin:2rem auto;padding:0 1rem;font:1rem/1.5 system-ui,sans-serif}"
        "code{font-family:ui-monospace,monospace;overflow-wrap:anywhere}table{border-collapse:collapse}"
        "th,td{border:1px solid #888;padding:.3rem .5rem;text-align:left;vertical-align:top}"
        "@media print{a{color:inherit}}"
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{style}</style></head>'
        f"<body>{body}</body></html>\n"
    )


def _fill(tokens: list[Token], values: Mapping[str, str]) -> None:
    for token in tokens:
        if token.type in ("code_inline", "fence", "code_block"):
            token.content = filled_code(token.content, values)
        elif token.type == "text":
            token.content = filled_text(token.content, values)
        _fill(token.children or [], values)


def _clean(text: str) -> str:
    return nh3.clean(text, tags=TAGS, attributes={"a": {"href"}}, url_schemes=SCHEMES, link_rel="noopener noreferrer")


def _known(name: str) -> None:
    names = runbook_names()
    if name not in names:
        raise NotFound(
            f"Runbook {name!r}", "docs/runbooks", nearest_says(name, names) or f"One of: {', '.join(names)}."
        )


def _read(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadFile(
            path.name, "the whole file", "cannot be read", "See that it is a file this user may read."
        ) from error
    if len(raw) > LARGEST_BYTES:
        raise BadFile(
            path.name, "the whole file", f"is larger than {LARGEST_BYTES // 1024} KiB", "Write a shorter one."
        )
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadFile(path.name, f"byte {error.start}", "is not UTF-8", "Save it as UTF-8.") from error
