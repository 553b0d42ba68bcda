"""How a mapped value and a row filter may be written. Both are parsed here and never passed on as text.

A value is a column; `column->a->b`, a path in a column's JSON; `=text`, a constant; `joined.column`, a column of the
joined table, with a path or without. One law: a column that really has such a name wins. So a text is read twice: first
without a catalogue, to see what it can be at all, then with the columns that are there.

A filter is conditions joined by `and`: `column comparison value`. Its values are texts, bound as literals where they
are used; nothing of them is ever SQL.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from recovery_api.domain.errors import BadInput

ARROW, JOINED = "->", "joined."

WRITE = "Write column, column->a->b, =constant, or joined.column."


@dataclass(frozen=True, slots=True)
class Term:
    """One mapped value. A constant has `text` and no column; `path` is empty where the column itself is meant."""

    column: str = ""
    path: tuple[str, ...] = ()
    is_joined: bool = False
    text: str | None = None

    @property
    def is_constant(self) -> bool:
        return self.text is not None

    @property
    def name(self) -> str:
        """The column as it is written: with `joined.` where it is the other table's. Empty for a constant."""
        return f"{JOINED}{self.column}" if self.is_joined else self.column


class Comparison(StrEnum):
    """How a filter compares. Null is no value: it meets `<>`, and none of the others but `is null`."""

    EQUAL = "="
    OTHER = "<>"
    LESS = "<"
    LESS_OR_EQUAL = "<="
    MORE = ">"
    MORE_OR_EQUAL = ">="
    IN = "in"
    IS_NULL = "is null"
    IS_NOT_NULL = "is not null"


ON_PATHS = (Comparison.EQUAL, Comparison.OTHER, Comparison.IN, Comparison.IS_NULL, Comparison.IS_NOT_NULL)
"""What a path's text may be compared by: as texts, 10 comes before 9."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition. `values`: none for `is null`, several for `in`, else one."""

    column: str
    comparison: Comparison
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        name = self.column if _BARE_NAME.fullmatch(self.column) else '"' + self.column.replace('"', '""') + '"'
        quoted = ["'" + value.replace("'", "''") + "'" for value in self.values]
        match self.comparison:
            case Comparison.IS_NULL | Comparison.IS_NOT_NULL:
                return f"{name} {self.comparison.value}"
            case Comparison.IN:
                return f"{name} in ({', '.join(quoted)})"
        return f"{name} {self.comparison.value} {quoted[0]}"


def term_parse(field: str, text: str, own: Collection[str] = (), joined: Collection[str] = ()) -> Term:
    """What `text` means, where the table has the columns `own` and the joined one `joined`. The longest name wins.

    Where a collection is empty every name may be a column. Raises: BadInput for what means nothing.

    >>> term_parse("key", "payload->order->id")
    Term(column='payload', path=('order', 'id'), is_joined=False, text=None)
    >>> term_parse("key", "a->b->c", own=["a", "a->b"])
    Term(column='a->b', path=('c',), is_joined=False, text=None)
    >>> term_parse("key", "joined.name").is_joined, term_parse("key", "joined.name", own=["joined.name"]).is_joined
    (True, False)
    >>> term_parse("op", "=insert").text
    'insert'
    """
    if (found := _column(text, own)) is not None and (own or _column_may_be(text)):
        return found
    if text.startswith("="):
        return Term(text=text[1:])
    is_joined = text.startswith(JOINED)
    rest = text.removeprefix(JOINED)
    if (found := _column(rest, joined if is_joined else own)) is None:
        parts = rest.split(ARROW)
        if not all(parts):
            raise BadInput(field, f"{text!r} has a part without a name", WRITE)
        if any(part.startswith(">") for part in parts[1:]):
            raise BadInput(field, f"{text!r} is SQL", "Write the path as column->a->b, without quotes and without ->>.")
        found = Term(parts[0], tuple(parts[1:]))
    return Term(found.column, found.path, is_joined)


def _column_may_be(text: str) -> bool:
    return not text.startswith(("=", JOINED)) and ARROW not in text


def _column(text: str, known: Collection[str]) -> Term | None:
    """The longest of the known columns that `text` begins with, and the path after it; None where there is none."""
    parts = text.split(ARROW)
    if not known:
        return Term(text) if len(parts) == 1 and text else None
    for count in range(len(parts), 0, -1):
        column, path = ARROW.join(parts[:count]), tuple(parts[count:])
        if column in known and all(path):
            return Term(column, path)
    return None


_BARE_NAME = re.compile(r"""[^\s"'<>=!(),-][^\s"'<>=!(),]*(->[^\s"'<>=!(),]+)*""")
_TOKENS = re.compile(
    r"""\s*(?:
        (?P<quoted>"(?:[^"]|"")*")
      | (?P<string>'(?:[^']|'')*')
      | (?P<sign><>|!=|<=|>=|=|<|>)
      | (?P<mark>[(),])
      | (?P<word>(?:->|[^\s"'<>=!(),-]|-(?!>))+)
    )""",
    re.X,
)
EXAMPLE = "Write column comparison value, joined by and: state = 'sent' and kind in ('a', 'b') and deleted_at is null."


def filter_parse(field: str, text: str) -> tuple[Condition, ...]:
    """The conditions of a filter. A value with blanks or marks stands in single quotes, such a name in double ones.

    Raises: BadInput.

    >>> [str(one) for one in filter_parse("filter", "state = sent and n >= 3 and x is not null")]
    ["state = 'sent'", "n >= '3'", 'x is not null']
    >>> filter_parse("filter", "k in ('it''s', b)")[0].values
    ("it's", 'b')
    """
    tokens = _tokens(field, text)
    conditions = []
    while True:
        condition, tokens = _condition(field, text, tokens)
        conditions.append(condition)
        if not tokens:
            return tuple(conditions)
        kind, said = tokens[0]
        if kind != "word" or said.lower() != "and":
            problem = f"{said!r} is not `and`"
            hint = " Conditions that are alternatives need `in`, or a view." if said.lower() == "or" else ""
            raise BadInput(field, problem, EXAMPLE + hint)
        tokens = tokens[1:]


def filter_text(conditions: Collection[Condition]) -> str:
    """The one spelling of a filter: what it is shown and digested as."""
    return " and ".join(map(str, conditions))


Tokens = list[tuple[str, str]]


def _tokens(field: str, text: str) -> Tokens:
    tokens, at = [], 0
    rest = text.rstrip()
    if "\x00" in rest:
        raise BadInput(field, "holds a NUL", EXAMPLE)
    while at < len(rest):
        found = _TOKENS.match(rest, at)
        if found is None:
            raise BadInput(field, f"cannot be read from {rest[at : at + 40]!r} on", EXAMPLE)
        kind = str(found.lastgroup)
        tokens.append((kind, found[kind]))
        at = found.end()
    return tokens


def _condition(field: str, text: str, tokens: Tokens) -> tuple[Condition, Tokens]:
    if len(tokens) < 2:
        raise BadInput(field, f"{text[:80]!r} ends before its condition does", EXAMPLE)
    (kind, column), (sign_kind, sign), rest = tokens[0], tokens[1], tokens[2:]
    if kind == "quoted":
        column = column[1:-1].replace('""', '"')
    elif kind != "word":
        raise BadInput(field, f"{column!r} stands where a column should", EXAMPLE)
    words = [said.lower() if of == "word" else "" for of, said in tokens[1:4]]
    if words[:2] == ["is", "null"]:
        return Condition(column, Comparison.IS_NULL), tokens[3:]
    if words == ["is", "not", "null"]:
        return Condition(column, Comparison.IS_NOT_NULL), tokens[4:]
    if sign_kind == "word" and sign.lower() == "in":
        values, rest = _values(field, rest)
        return Condition(column, Comparison.IN, values), rest
    if sign_kind != "sign":
        raise BadInput(field, f"{sign!r} is no comparison", f"One of: {', '.join(one.value for one in Comparison)}.")
    if not rest:
        raise BadInput(field, f"{text[:80]!r} ends before its condition does", EXAMPLE)
    return Condition(column, Comparison("<>" if sign == "!=" else sign), (_value(field, rest[0]),)), rest[1:]


def _values(field: str, tokens: Tokens) -> tuple[tuple[str, ...], Tokens]:
    problem = "the values of `in` are not a list in brackets"
    if not tokens or tokens[0] != ("mark", "("):
        raise BadInput(field, problem, EXAMPLE)
    values = []
    for at in range(1, len(tokens), 2):
        values.append(_value(field, tokens[at]))
        following = tokens[at + 1] if at + 1 < len(tokens) else None
        if following == ("mark", ")"):
            return tuple(values), tokens[at + 2 :]
        if following != ("mark", ","):
            break
    raise BadInput(field, problem, EXAMPLE)


def _value(field: str, token: tuple[str, str]) -> str:
    kind, said = token
    if kind == "string":
        return said[1:-1].replace("''", "'")
    if kind == "quoted":
        raise BadInput(
            field, f"{said} stands where a value should", "Put values in single quotes; double ones are names."
        )
    if kind == "word" and said.lower() != "null":
        return said
    raise BadInput(field, f"{said!r} stands where a value should", "Put it in single quotes; for null write is null.")
