"""One spelling of every content, and the digests made of it.

The law: two contents are the same exactly when their canonical texts are. The text is what PostgreSQL prints for
`jsonb`, with numbers freed of trailing zeros and with what `jsonb` cannot hold (NUL, a lone surrogate) escaped, so that
a file read here and a table digested by SQL (workers.connectors.postgresql.canonical_sql) meet. Null, a missing member
and "" are three. Every digest is baked into acceptance records: this form never changes.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable, Iterator
from decimal import Decimal
from hashlib import sha256
from json.encoder import encode_basestring
from typing import Any, Final

import numpy as np
import pyarrow as pa

from recovery_api.domain.errors import BadInput, UncanonicalContent

NUMBER_WHOLE_DIGITS, NUMBER_FRACTION_DIGITS = 131072, 16383
"""What PostgreSQL's numeric holds before and after the point."""

_NUMBER = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?", re.ASCII)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_HEX_DIGEST = re.compile(r"[0-9A-Fa-f]{64}", re.ASCII)


class Absent:
    """The content of an event that has none: SQL NULL, a missing member. Not JSON's null and not ""."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent()


class Number(str):
    """A JSON number as it was written, so that nothing rounds it on the way."""

    __slots__ = ()


def content_parse(text: str) -> Any:
    """The content that a JSON text spells; its numbers stay as written (`Number`).

    Raises: json.JSONDecodeError; UncanonicalContent for NaN, Infinity, and nesting too deep to read.
    """
    try:
        return _DECODER.decode(text)
    except RecursionError as error:
        raise _too_deep() from error


def canonical(content: Any) -> str:
    """The canonical text of a content: what `json` parses to, or numbers as `Number`, `Decimal`, `int` or `float`.

    >>> canonical({"bb": Number("1.50"), "a": [True, None, "\\u00e9"], "c": Decimal("1e2")})
    '{"a": [true, null, "é"], "c": 100, "bb": 1.5}'
    >>> canonical(ABSENT), canonical(None), canonical("")
    ('', 'null', '""')

    Raises: UncanonicalContent for a number that jsonb cannot hold, and for nesting too deep.
    """
    if content is ABSENT:
        return ""
    try:
        return _text(content)
    except RecursionError as error:
        raise _too_deep() from error


def json_written(content: Any) -> str:
    """JSON text of a parsed content with its numbers as they were written and its members in their order."""
    kind = type(content)
    if kind is dict:
        return "{" + ", ".join(f"{json_string(name)}: {json_written(item)}" for name, item in content.items()) + "}"
    if kind is list:
        return "[" + ", ".join(map(json_written, content)) + "]"
    return str(content) if isinstance(content, Number | Decimal) else json.dumps(content, ensure_ascii=True)


def number_canonical(written: str) -> str:
    """The number as an exact plain decimal without trailing fractional zeros.

    >>> [number_canonical(text) for text in ("1.0", "1.50", "1e2", "-0", "1E-3", "-12.5e-1")]
    ['1', '1.5', '100', '0', '0.001', '-1.25']

    Raises: UncanonicalContent.
    """
    if len(written) < 19 and written.isascii() and written.isdigit():
        return written.lstrip("0") or "0"
    if not (match := _NUMBER.fullmatch(written)):
        raise UncanonicalContent("number", f"{written[:40]!r} is not a number", "JSON has no NaN and no Infinity.")
    sign, whole, fraction, exponent = match.groups(default="")
    if not fraction and not exponent:
        digits = whole.lstrip("0") or "0"
        _refuse_beyond(written, len(digits), 0)
        return digits if digits == "0" else sign + digits
    if len(exponent) > 10:
        _refuse_beyond(written, NUMBER_WHOLE_DIGITS + 1, 0)
    shift = int(exponent or 0)
    digits, point = whole + fraction, len(whole) + shift
    significant = digits.lstrip("0")
    point -= len(digits) - len(significant)
    _refuse_beyond(written, point if significant else 0, len(fraction) - shift)
    if not significant:
        return "0"
    if point <= 0:
        text = f"0.{'0' * -point}{significant}"
    elif point >= len(significant):
        return f"{sign}{significant}{'0' * (point - len(significant))}"
    else:
        text = f"{significant[:point]}.{significant[point:]}"
    return sign + text.rstrip("0").rstrip(".")


def json_string(text: str) -> str:
    """The text as a JSON string, escaped as PostgreSQL's escape_json does; a lone surrogate as `\\udXXX`.

    >>> json_string("a\\x00\\t\\x7f\\ud83d")
    '"a\\\\u0000\\\\t\\x7f\\\\ud83d"'
    """
    quoted = encode_basestring(text)
    if quoted.isascii() or not _LONE_SURROGATE.search(quoted):
        return quoted
    return _LONE_SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)


def content_digest(content: Any, op: str = "update") -> str:
    """Lower-case hex SHA-256 of the canonical text. An absent content is the empty text, of a delete `null`."""
    if content is ABSENT and op == "delete":
        content = None
    return sha256(canonical(content).encode()).hexdigest()


def digest_given(text: str) -> str:
    """A digest that came ready-made, as it is matched: 64 hex digits lower-cased, anything else as it stands."""
    return text.lower() if _HEX_DIGEST.fullmatch(text) else text


def payload_digest(op: str, key: str | None, digest: str) -> bytes:
    """32 bytes over op, key and content digest. The coordinate is not in it; payloads match by coordinate and this."""
    quoted = "null" if key is None else json_string(key)
    return sha256(f"{op} {quoted} {digest}".encode("utf-8", "surrogatepass")).digest()


def entry_digest(lane: str, position: int, ordinal: int, payload: bytes) -> bytes:
    """32 bytes over lane, coordinate as held, and payload digest: what a batch digest sums.

    >>> entry_digest("0", 1, 0, bytes(32)).hex()[:16]
    'b60fbcd942d32825'
    """
    return sha256(b"%b\x00%b%b" % (lane.encode(), struct.pack(">qq", position, ordinal), payload)).digest()


def entry_digests(lanes: Iterable[str], positions: Iterable[int], ordinals: Iterable[int], payloads: Any) -> pa.Array:
    """The entry digests of a batch, in its order."""
    rows = zip(lanes, positions, ordinals, payloads, strict=True)
    return pa.array([entry_digest(*row) for row in rows], pa.binary(32))


ENTRIES_AT_ONCE = 65_536


def lane_entry_digests(lane: str, position: np.ndarray, ordinal: np.ndarray, payload: np.ndarray) -> Iterator[pa.Array]:
    """The entry digests of one lane's rows, in their order, ENTRIES_AT_ONCE at a time. `payload`: 32 bytes a row.

    As `entry_digest` row by row, in a third of its time: only the hash itself is called for each row.
    """
    head = np.frombuffer(lane.encode() + b"\x00", np.uint8)
    width = len(head) + 16 + 32
    for start in range(0, len(position), ENTRIES_AT_ONCE):
        stop = min(start + ENTRIES_AT_ONCE, len(position))
        said = np.empty((stop - start, width), np.uint8)
        said[:, : len(head)] = head
        numbers = np.stack([position[start:stop], ordinal[start:stop]], axis=1).astype(">i8")
        said[:, len(head) : len(head) + 16] = numbers.view(np.uint8)
        said[:, len(head) + 16 :] = payload[start:stop]
        whole = said.tobytes()
        hashed = b"".join([sha256(whole[at : at + width]).digest() for at in range(0, len(whole), width)])
        yield pa.FixedSizeBinaryArray.from_buffers(pa.binary(32), stop - start, [None, pa.py_buffer(hashed)])


def batch_digest(digests: pa.Array | pa.ChunkedArray) -> str:
    """Order-free digest of a batch: per 64-bit limb the exact sum over its entry digests, `s0:s1:s2:s3`.

    Limbs are signed and big-endian, as SQL's bit(64)::bigint reads them. The empty batch is `0:0:0:0`.
    """
    sums = [0, 0, 0, 0]
    chunks = digests.chunks if isinstance(digests, pa.ChunkedArray) else [digests]
    for chunk in chunks:
        limbs = digest_words(chunk).view(">i8").astype(np.int64)
        high, low = limbs >> 32, limbs & 0xFFFFFFFF
        for limb in range(4):
            sums[limb] += (int(high[:, limb].sum()) << 32) + int(low[:, limb].sum())
    return ":".join(map(str, sums))


def batch_digest_add(*digests: str) -> str:
    """The digest of disjoint batches together.

    >>> batch_digest_add("1:-2:3:4", "0:0:0:0", "1:1:1:1")
    '2:-1:4:5'
    """
    sums = zip(*(map(int, digest.split(":")) for digest in ("0:0:0:0", *digests)), strict=True)
    return ":".join(str(sum(limb)) for limb in sums)


def digest_words(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """A column of 32-byte digests as an (n, 4) array of its bytes in native 64-bit words: for equality, not for order.

    No copy where the column is one chunk. Raises: BadInput for a null digest, or one that is not 32 bytes.
    """
    if isinstance(column, pa.ChunkedArray):
        column = (
            column.chunk(0)
            if column.num_chunks == 1
            else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
        )
    if column.null_count:
        raise BadInput(
            "payload_digest", f"{column.null_count} rows have none", "Read them by payload, or by coordinate."
        )
    if column.type != pa.binary(32):
        try:
            column = column.cast(pa.binary(32))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise BadInput("payload_digest", "is not 32 bytes", "").because(error) from error
    start, count = column.offset * 32, len(column)
    buffer = column.buffers()[1]
    if count == 0 or buffer is None:
        return np.empty((0, 4), np.uint64)
    return np.frombuffer(buffer, np.uint8, count * 32, start).view(np.uint64).reshape(count, 4)


def _text(content: Any) -> str:
    kind = type(content)
    if kind is str:
        return json_string(content)
    if kind is Number:
        return number_canonical(content)
    if content is None:
        return "null"
    if kind is bool:
        return "true" if content else "false"
    if kind is dict:
        members = [f"{json_string(name)}: {_text(content[name])}" for name in _in_order(content)]
        return "{" + ", ".join(members) + "}"
    if kind is list:
        return "[" + ", ".join([_text(item) for item in content]) + "]"
    if isinstance(content, int | float | Decimal):
        return number_canonical(str(content))
    if isinstance(content, str):
        return json_string(str(content))
    raise UncanonicalContent("content", f"a {kind.__name__} is not JSON", "")


def _in_order(members: dict[str, Any]) -> list[str]:
    names = sorted(members)  # by code point, which is the order of UTF-8 bytes
    names.sort(key=len if "".join(names).isascii() else lambda name: len(name.encode("utf-8", "surrogatepass")))
    return names


def _refuse_beyond(written: str, whole: int, fraction: int) -> None:
    if whole > NUMBER_WHOLE_DIGITS or fraction > NUMBER_FRACTION_DIGITS:
        raise UncanonicalContent(
            "number",
            f"{written[:40]!r}… has more digits than a database holds",
            f"At most {NUMBER_WHOLE_DIGITS} before the point and {NUMBER_FRACTION_DIGITS} after it.",
        )


def _too_deep() -> UncanonicalContent:
    return UncanonicalContent("content", "is nested too deep to be read", "Give its digest instead.")


def _refuse_constant(name: str) -> Any:
    raise UncanonicalContent("number", f"{name} is not JSON", "")


_DECODER = json.JSONDecoder(parse_float=Number, parse_int=Number, parse_constant=_refuse_constant)
