"""SQL for a mapped content: the value once decoded, its canonical text, and what is handed over.

Bytes have one form, whether they come as bytea, hex digits or base64: the JSON string of `\\x` and their hex. JSON has
one form, whether it comes expanded, inside a string, or as UTF-8 bytes.
"""

from __future__ import annotations

from workers.connectors.postgresql import canonical_sql
from workers.connectors.postgresql.mapped_rows import JSON_TYPES, TEXTS

CONTENT_TYPES: dict[str, tuple[str, ...]] = {
    "json": JSON_TYPES,
    "escaped": JSON_TYPES,
    "text": (),
    "bytes": ("bytea",),
    "hex": TEXTS,
    "base64": TEXTS,
    "json_bytes": ("bytea",),
    "text_bytes": ("bytea",),
}
"""Which types a content may have for each content_format; () is any type that has a text."""

HANDED_OVER_AS_IS = ("json", "escaped", "json_bytes")
"""What is handed over as the JSON it is; everything else as a JSON string."""

HEX_PREFIX = canonical_sql.literal(r"^(\\x|0[xX])")


def decoded(format_: str, type_: str, column: str, is_leaf: bool) -> str:
    """The content itself: JSON, text or bytea; NULL for none. `is_leaf`: `column` is a path's text already."""
    match format_:
        case "escaped" if is_leaf:
            return column
        case "escaped":
            given = column if type_ in ("json", "jsonb") else f"({column})::json"
            return f"({given} #>> ARRAY[]::text[])"
        case "hex":
            return f"decode(regexp_replace({column}, {HEX_PREFIX}, ''), 'hex')"
        case "base64":
            return f"decode({column}, 'base64')"
        case "json_bytes" | "text_bytes":
            return f"convert_from({column}, 'UTF8')"
    return column


def canonical_of(format_: str, type_: str, content: str, has_soft_errors: bool) -> str:
    """Canonical text of the decoded `content`: NULL where Python must compute it."""
    match format_, type_:
        case "text" | "text_bytes", _:
            return canonical_sql.canonical_text(content)
        case "bytes" | "hex" | "base64", _:
            return canonical_sql.canonical_bytes(content)
        case "json", "jsonb":
            return canonical_sql.canonical_jsonb(content)
        case "json", "json":
            return canonical_sql.canonical_json(content, has_soft_errors)
    return canonical_sql.canonical_json_text(content, has_soft_errors)
