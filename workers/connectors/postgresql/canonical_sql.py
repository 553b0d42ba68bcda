r"""The canonical form and its digests as SQL expressions, for use inline at a source where nothing may be installed.

One law: for every value both can hold, these give byte for byte what workers.evidence.canonical gives; where
PostgreSQL cannot hold a value as jsonb (NUL, a lone surrogate, a number past numeric's bounds) they give NULL, and the
connector computes those rows in Python from the raw text.

Each function takes SQL expressions, already quoted by the caller, and returns one; none of them contains a
parameter, a `%` or a brace. An expression given is evaluated once, unless its docstring says otherwise.
"""

from __future__ import annotations


def literal(value: str) -> str:
    r"""An SQL string literal that reads alike whatever standard_conforming_strings says."""
    return "E'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


MAY_HAVE_TRAILING_ZEROS = literal(r"[0-9]\.[0-9]*0([^0-9]|$)")
"""A cheap first look: most documents have no number that ends in a fractional zero, and skip the replacement."""

STRINGS_OR_TRAILING_ZEROS = literal(r"""((?:"(?:[^"\\]|\\.)*"[^".]*)+)|(\.[0-9]*[1-9])0+(?![0-9])|\.0+(?![0-9])""")
"""Runs of strings (kept as they are), a fraction with trailing zeros (kept up to its last digit), a zero fraction."""

MAY_NOT_FIT_JSONB = literal(r"\\u|[eE][+-]?[0-9][0-9][0-9][0-9]")
"""An escape that jsonb may refuse or an exponent that numeric may refuse: looked at closely, not refused."""

LONGEST_SAFE_BYTES = 15_000
"""A document this short cannot spell a number past numeric's bounds without a four-digit exponent."""

DIGEST_OF_NOTHING = "decode('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855', 'hex')"
"""SHA-256 of the empty text: absent content."""

DIGEST_OF_NULL = "decode('74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b', 'hex')"
"""SHA-256 of `null`: the absent content of a delete."""


def canonical_jsonb(content: str) -> str:
    """Canonical text of a jsonb expression; NULL for NULL."""
    return (
        f"(SELECT CASE WHEN t ~ {MAY_HAVE_TRAILING_ZEROS} THEN {zeros_dropped('t')} ELSE t END"
        f" FROM (SELECT ({content})::text AS t OFFSET 0) AS spelled)"
    )


def zeros_dropped(text: str) -> str:
    """A text expression of jsonb without the trailing fractional zeros of its numbers."""
    kept = literal(r"\1\2")
    return f"regexp_replace({text}, {STRINGS_OR_TRAILING_ZEROS}, {kept}, 'g')"


def canonical_json(content: str, has_soft_errors: bool = True) -> str:
    """Canonical text of a `json` expression, or NULL where jsonb cannot hold it.

    `has_soft_errors`: the server is PostgreSQL 16 or newer, and can say without an error whether jsonb holds a text;
    an older one answers NULL for everything that might not fit.
    """
    return (
        f"(SELECT CASE WHEN octet_length(raw) <= {LONGEST_SAFE_BYTES} AND raw !~ {MAY_NOT_FIT_JSONB}"
        f" OR {_fits('raw') if has_soft_errors else 'false'}"
        f" THEN {canonical_jsonb('raw::jsonb')} END"
        f" FROM (SELECT ({content})::text AS raw OFFSET 0) AS given)"
    )


def canonical_json_text(content: str, has_soft_errors: bool = True) -> str:
    """Canonical text of a text expression that holds JSON, or NULL where it is not JSON or jsonb cannot hold it.

    Without `has_soft_errors` always NULL: the texts are read raw and judged in Python.
    """
    if not has_soft_errors:
        return f"CASE WHEN ({content}) IS NULL THEN NULL::text END"
    return (
        f"(SELECT CASE WHEN {_fits('raw')} THEN {canonical_jsonb('raw::jsonb')} END"
        f" FROM (SELECT ({content})::text AS raw OFFSET 0) AS given)"
    )


def canonical_text(content: str) -> str:
    """Canonical text of a text expression read as text: its JSON string."""
    return f"(to_json(({content})::text)::text)"


def canonical_bytes(content: str) -> str:
    r"""Canonical text of a bytea expression: the JSON string of `\x` and its hex."""
    quote = literal(r'"\\x')
    return f"""({quote} || encode(({content}), 'hex') || '"')"""


def content_digest(canonical: str, content: str, op: str) -> str:
    """SHA-256 of the canonical text; of absent content, by `op`; NULL where `canonical` is NULL and content is not.

    `content` is evaluated once more, for IS NULL only.
    """
    return (
        f"(CASE WHEN ({content}) IS NULL THEN CASE WHEN ({op}) = 'delete' THEN {DIGEST_OF_NULL}"
        f" ELSE {DIGEST_OF_NOTHING} END ELSE sha256(convert_to({canonical}, 'UTF8')) END)"
    )


def payload_digest(op: str, key: str, digest_of_content: str) -> str:
    """SHA-256 over op, key and content digest: what is matched. NULL where the content digest is."""
    return f"sha256(convert_to(({op}) || ' ' || {key_json(key)} || ' ' || encode({digest_of_content}, 'hex'), 'UTF8'))"


def key_json(key: str) -> str:
    """A key as a JSON string; `null` for NULL."""
    return f"coalesce(to_json(({key})::text)::text, 'null')"


def entry_digest(lane: str, position: str, ordinal: str, digest_of_payload: str) -> str:
    """SHA-256 over lane, held coordinate and payload digest: what a batch is summed from."""
    return (
        f"sha256(convert_to({lane}, 'UTF8') || decode('00', 'hex') || int8send(({position})::bigint)"
        f" || int8send(({ordinal})::bigint) || ({digest_of_payload}))"
    )


def batch_digest(digest_of_entry: str) -> str:
    """Aggregate over entry digests: four exact sums of signed 64-bit limbs, `s0:s1:s2:s3`. Evaluates it four times."""
    return " || ':' || ".join(f"coalesce(sum({_limb(digest_of_entry, number)}), 0)::text" for number in range(4))


def _limb(digest: str, number: int) -> str:
    return f"(('x' || encode(substr({digest}, {8 * number + 1}, 8), 'hex'))::bit(64)::bigint)"


def _fits(raw: str) -> str:
    return f"pg_input_is_valid({raw}, 'jsonb')"
