"""No page carries a character that acts on its reader (recovery_api.domain.visible), whichever template forgot it.

It is done to the whole answer, once, since every value of every template may hold one. What a form gives back stays as
it is: an edited option must be saved as it was. JSON is escaped as JSON, and holds the same: curl writes to terminals.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from recovery_api.domain.visible import ACTING, visible, visible_json

GIVEN_BACK = re.compile(r'(\svalue="[^"]*"|<textarea\b[^>]*>[^<]*</textarea>)')
"""Values are escaped by the templates, so that a quotation mark or an angle bracket always ends one."""

SCRIPT = re.compile(r"(<script\b[^>]*>[^<]*</script>)")
"""Data of a chart, as JSON: there the escape itself is escaped, so that it is drawn as it is read elsewhere."""


class ActingCharactersMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        kind = response.get("Content-Type", "").partition(";")[0]
        shown = page_visible if kind == "text/html" else visible_json if kind.endswith("json") else None
        if shown is None or getattr(response, "streaming", False):
            return response
        text = response.content.decode(response.charset, "replace")
        if ACTING.search(text):
            response.content = shown(text).encode(response.charset)
            if response.has_header("Content-Length"):
                response["Content-Length"] = str(len(response.content))
        return response


def page_visible(text: str) -> str:
    r"""
    >>> page_visible('<bdi>\u202ea</bdi><input value="\u202e"><script type="j">["\u202e"]</script>') == (
    ...     '<bdi>\\u202ea</bdi><input value="\u202e"><script type="j">["\\\\u202e"]</script>')
    True
    """
    parts = []
    for at, part in enumerate(GIVEN_BACK.split(text.replace("\r\n", "\n"))):
        if at % 2:
            parts.append(part)
            continue
        for inner, one in enumerate(SCRIPT.split(part)):
            escaped = visible(one)
            parts.append(ACTING.sub(lambda found: "\\" + visible(found[0]), one) if inner % 2 else escaped)
    return "".join(parts)
