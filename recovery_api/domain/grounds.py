"""What a safe frontier rests on: shown, an owner's word, or a grace (THEORY sections 1 and 3, P3).

The law: only a proven ground lets a verdict say *exactly once at f*. On every other ground the same counts say
*exactly once at f, given …*, with what was given named.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import astuple, dataclass
from enum import StrEnum


class Standing(StrEnum):
    """How much of the ground is known."""

    PROVEN = "proven"
    """Nobody but a superuser can make it false, as the catalogue showed before and after the reading."""
    ATTESTED = "attested"
    """Somebody who answers for the source said so; who and when is recorded."""
    ASSUMED = "assumed"
    """A grace: older transactions are taken to have ended, or not to have drawn a coordinate."""


class Right(StrEnum):
    """What a role that can be used, and is no superuser, may do to a coordinate. Each value follows "role 'x' may"."""

    OWN = "act as the owner of"
    SUPPLY = "supply the coordinate itself in"
    CHANGE = "change the coordinate in"
    TRIGGER = "put a trigger on"
    DRAW = "draw or set numbers of"
    RISE = "become a superuser by way of"
    """Membership in a superuser's role, or in one that reaches the server's files or programs."""
    GRANT = "grant itself the owner of"
    """CREATEROLE before PostgreSQL 16."""


class Setter(StrEnum):
    """What can put a number into the coordinate without a right on it. Each value follows the thing's name."""

    TRIGGER = "a trigger before the row, may set the coordinate in"
    RULE = "a rule, rewrites what is written to"
    CASCADE = "a foreign key, may change the coordinate in"
    PASSAGE = "writes with its owner's rights to"
    FUNCTION = "a SECURITY DEFINER function that others may call, has rights on"
    EVENT_TRIGGER = "an event trigger whose function belongs to no superuser, runs with the rights of who changes"


@dataclass(frozen=True, slots=True)
class Held:
    """A right that a usable role holds. `place`: the table, partition or sequence."""

    role: str
    right: Right
    place: str


@dataclass(frozen=True, slots=True)
class Set:
    """A thing in the catalogue that may set the coordinate."""

    name: str
    setter: Setter
    place: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """The sequence that a column's numbers are drawn from, as its parameters stand."""

    oid: int
    name: str
    cache: int
    increment: int
    is_cycling: bool


@dataclass(frozen=True, slots=True)
class Column:
    """The coordinate's first column on one table or partition. `is_foreign`: it lies on another server. `default`: as PostgreSQL prints it, None for none."""

    place: str
    is_root: bool
    is_foreign: bool
    type: str
    is_not_null: bool
    identity: str
    default: str | None
    sequence: Sequence | None


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Everything a ground is judged from. `width`: how many columns the coordinate has. `moves`: who and what can change
    a column that a row filter looks at, and so bring in a row below a frontier; a phrase each."""

    oid: int
    name: str
    width: int
    is_unlogged: bool
    columns: tuple[Column, ...]
    rights: tuple[Held, ...]
    setters: tuple[Set, ...]
    moves: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """The same for as long as the same roles and things can set the coordinate in the same ways.

        Partitions are not told apart: a new one that is like the others changes nothing.
        """
        columns = {
            (c.is_foreign, c.type, c.is_not_null, c.identity, c.default, astuple(c.sequence) if c.sequence else None)
            for c in self.columns
        }
        rights = {(held.role, held.right.value) for held in self.rights}
        setters = {(found.name, found.setter.value) for found in self.setters}
        bound = [self.oid, self.name, self.width, self.is_unlogged]
        bound += [sorted(map(repr, some)) for some in (columns, rights, setters)]
        if self.moves:
            bound.append(sorted(self.moves))
        return hashlib.sha256(json.dumps(bound).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Judged:
    """Whether a ground holds here. `obstacles`: why it is none at all; `doubts`: what the catalogue cannot rule out,
    which an owner may attest."""

    obstacles: tuple[str, ...]
    doubts: tuple[str, ...]


ONLY_NEXTVAL = re.compile(r"nextval\('.*'::regclass\)", re.S)
OWN_TRANSACTION = ("pg_current_xact_id()", "txid_current()")
FOREIGN = "{} is a foreign table: its rows are committed on another server"
DOUBTS_NAMED = 5


def drawn_judge(found: Catalogue) -> Judged:
    """Whether every number is drawn inside the INSERT that commits it, so that later ones are higher.

    A sequence's number that another statement may set, skip or supply is a doubt; one that is not drawn at all, is
    drawn several at a time, or does not ascend is an obstacle, whatever anybody attests.
    """
    obstacles = ["the coordinate has two columns"] if found.width != 1 else []
    sequences = {column.sequence.oid for column in found.columns if column.sequence}
    for column in found.columns:
        name = f"{found.name!r} of {column.place}"
        if column.is_foreign:
            obstacles.append(FOREIGN.format(column.place))
            continue
        if not column.identity and column.default is None and not column.is_root:
            continue  # nothing is drawn here: its rows come by way of the table, or from who may supply a number
        if column.sequence is None or not (column.identity or ONLY_NEXTVAL.fullmatch(column.default or "")):
            obstacles.append(f"{name} is not drawn from a sequence by its default")
            continue
        if column.sequence.cache != 1:
            cache = column.sequence.cache
            obstacles.append(f"the sequence of {name} hands out {cache} numbers at a time (CACHE must be 1)")
        if column.sequence.increment < 1 or column.sequence.is_cycling:
            obstacles.append(f"the sequence of {name} does not ascend")
    if len(sequences) > 1:
        obstacles.append(f"the partitions draw {found.name!r} from {len(sequences)} sequences")
    doubts = _doubts(found)
    if found.is_unlogged:
        doubts = (*doubts, "the table is UNLOGGED: a crash empties it and may start its numbers again")
    return Judged(tuple(dict.fromkeys(obstacles)), doubts)


def numbers_step(found: Catalogue) -> int | None:
    """How far apart the numbers lie that one sequence draws for the coordinate. None: nothing shows that one does.

    Only then a number without a row means anything: numbers that a client makes up have none missing between them.
    """
    drawn = {column.sequence for column in found.columns if column.sequence}
    undrawn = [column for column in found.columns if column.sequence is None and (column.is_root or column.default)]
    if found.width != 1 or len(drawn) != 1 or undrawn:
        return None
    sequence = drawn.pop()
    return sequence.increment if sequence.increment > 0 and not sequence.is_cycling else None


def transaction_ids_judge(found: Catalogue) -> Judged:
    """Whether the coordinate's first column is always the writing transaction's own id."""
    obstacles = []
    for column in found.columns:
        name = f"{found.name!r} of {column.place}"
        if column.is_foreign:
            obstacles.append(FOREIGN.format(column.place))
            continue
        if column.type != "xid8":
            obstacles.append(f"{name} is {column.type}, not xid8")
            continue
        if not column.is_not_null:
            obstacles.append(f"{name} may be null")
        if column.default not in OWN_TRANSACTION:
            obstacles.append(f"{name} has not the default pg_current_xact_id()")
    return Judged(tuple(dict.fromkeys(obstacles)), _doubts(found, drawn=False))


def standing_of(doubts: Collection[str], is_attested: bool) -> Standing:
    """How much of a ground without obstacles is known."""
    if not doubts:
        return Standing.PROVEN
    return Standing.ATTESTED if is_attested else Standing.ASSUMED


def doubts_say(doubts: Collection[str]) -> str:
    """The first doubts as one phrase."""
    named = "; ".join(list(doubts)[:DOUBTS_NAMED])
    return named if len(doubts) <= DOUBTS_NAMED else f"{named}; and {len(doubts) - DOUBTS_NAMED} more"


def moves_of(found: Catalogue, column: Catalogue) -> tuple[str, ...]:
    """What can change a column that the filter looks at, besides what can change the coordinate anyway.

    `column`: what the catalogue shows of that column.
    """
    said = [
        f"role {held.role!r} may change {column.name!r} in {held.place}"
        for held in column.rights
        if held.right is Right.CHANGE
    ]
    known = {(one.name, one.setter) for one in found.setters}
    said += [
        f"{one.name}, {one.setter.value} {one.place}" for one in column.setters if (one.name, one.setter) not in known
    ]
    return tuple(dict.fromkeys(said))


def _doubts(found: Catalogue, drawn: bool = True) -> tuple[str, ...]:
    """What lets somebody who is no superuser choose a coordinate.

    GENERATED ALWAYS stops an UPDATE, and neither OVERRIDING, COPY nor MERGE.
    """
    always = {column.place for column in found.columns if column.identity == "a"}
    owners = {(held.role, held.place) for held in found.rights if held.right is Right.OWN}
    said = []
    for held in found.rights:
        is_named_as_owner = held.right is not Right.OWN and (held.role, held.place) in owners
        is_harmless = held.right is Right.CHANGE and held.place in always
        if is_named_as_owner or is_harmless or (held.right is Right.DRAW and not drawn):
            continue
        said.append(f"role {held.role!r} may {held.right.value} {held.place}")
    said += [f"{one.name}, {one.setter.value} {one.place}" for one in found.setters]
    return tuple(dict.fromkeys(said))


def came_late(earlier: Mapping[str, int], now: Mapping[str, int]) -> int:
    """How many rows, at the least, came in at or below one frontier between two readings of the history there.

    Fingerprints as the readings give them: `count`, and `positions`, a sum over the coordinates. Fewer rows than before
    say nothing: retention dropped some, and what came beside that cannot be told from it.

    >>> came_late({"count": 3, "positions": 9}, {"count": 4, "positions": 14})
    1
    >>> came_late({"count": 3, "positions": 9}, {"count": 3, "positions": 11})  # one went, another came
    1
    >>> came_late({"count": 3, "positions": 9}, {"count": 2, "positions": 4})
    0
    """
    more = now["count"] - earlier["count"]
    if more == 0 and now["positions"] != earlier["positions"]:
        return 1
    return max(more, 0)


def late_says(count: int, named: Collection[str], f: str, since: str, missing: Collection[str] = ()) -> str:
    """The sentence for rows that came in at or below `f` after it was taken to be safe. `since`: after what.

    `missing`: those of the named that the sink does not have.

    >>> late_says(1, ["3"], "5", "the frontier was pinned", ["3"])
    '1 row at or below 5 was committed after the frontier was pinned (3; not at the sink: 3): others may follow'
    """
    rows = f"{count} rows at or below {f} were" if count > 1 else f"1 row at or below {f} was"
    more = ", …" if count > len(named) > 0 else ""
    which = f"{', '.join(named)}{more}" if named else "it cannot be told which"
    lacking = f"; not at the sink: {', '.join(missing)}" if missing else ""
    return f"{rows} committed after {since} ({which}{lacking}): others may follow"
