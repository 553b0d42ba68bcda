"""Characters that would act on a page or a terminal instead of being read: shown as what they are.

Keys, event ids, names and applications come from other people's systems. An ESC moves a terminal's cursor and rewrites
what stands above it; a right-to-left override shows `10.50` for `05.01`. Joiners that scripts need (U+200C, U+200D) stay.
"""

from __future__ import annotations

import re

ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)
"""Controls (but tab and line feed), bidirectional marks, embeddings and isolates, and what has no width."""


def visible(text: str) -> str:
    r"""`text` with every acting character as its escape.

    >>> visible("key\x1b[2J \u202e1.50\u202c"), visible("tab\tand\nline, کتاب‌ها")
    ('key\\x1b[2J \\u202e1.50\\u202c', 'tab\tand\nline, کتاب\u200cها')
    """
    return ACTING.sub(_escape, text)


def visible_json(text: str) -> str:
    r"""JSON text that holds the same: an acting character becomes JSON's own escape of it.

    >>> visible_json('{"key": "\u202e"}')
    '{"key": "\\u202e"}'
    """
    return ACTING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
