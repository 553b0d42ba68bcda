"""How accepted entries are matched with events where coordinate and content do not suffice, and what is said of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recovery_api.domain.counts import LaneCounts
from recovery_api.domain.errors import BadInput
from recovery_api.domain.identity import Identity, IdType, Lifetime
from workers.evidence.canonical import canonical
from workers.evidence.files import ReadOptions, event_at
from workers.evidence.kernel.ids import EXAMPLES, ids_canonical
from workers.evidence.sides import Side, ids_meet, side_keep

COMPARED_AT_MOST = 10_000
"""How many events with values that the log did not hold are looked at one by one; more are left undecided."""


@dataclass(frozen=True)
class Matching:
    """`identity`: the record knows only ids. `strangers`: entries whose id no event has. `uncompared`: a sentence each."""

    identity: Identity | None = None
    strangers: int = 0
    is_by_id: bool = False
    uncompared: tuple[str, ...] = ()

    @property
    def doubts(self) -> tuple[str, ...]:
        return self.uncompared

    @property
    def given(self) -> tuple[str, ...]:
        return ("an event id is never used again",) if self.is_by_id and self.identity is None else ()

    @property
    def grounds(self) -> tuple[str, ...]:
        if not self.is_by_id:
            return ()
        return ("Entries were brought to events by event id, which is each event's alone in the history.",)

    def counts(self, counts: LaneCounts) -> LaneCounts:
        return replace(counts, ids_unmatched=self.strangers) if self.identity is not None else counts


def match_by_event_id(sides: dict[str, Side], has_contents: bool, is_only_lane: bool) -> Matching:
    """Entries take the coordinate of the event whose id they have, whatever their own says.

    With contents, an entry that no event has the id of is premature; without, it is counted and nothing more. With
    several lanes only those of this lane can be told.

    Raises: BadInput.
    """
    history, accepted = sides["history"], sides["accepted"]
    texts = history.extra.pop("event_id"), accepted.extra.pop("event_id")
    if accepted_nulls := texts[1].null_count:
        raise BadInput(
            "event_id", f"{accepted_nulls} entries of the record have none", "Map it: --map accepted:event_id=..."
        )
    id_type = _id_type(texts[0])
    ids = tuple(pa.concat_arrays(ids_canonical(text, id_type).chunks or [pa.array([], pa.string())]) for text in texts)
    strangers = ids_meet(history, accepted, (ids[0], ids[1]), has_contents)
    named: tuple[str, ...] = ()
    if strangers and (not has_contents or not is_only_lane):
        is_met = pc.is_in(ids[1], value_set=ids[0], skip_nulls=True).to_numpy(zero_copy_only=False)
        whole = texts[1].combine_chunks() if isinstance(texts[1], pa.ChunkedArray) else texts[1]
        named = tuple(whole.filter(pa.array(~is_met))[:EXAMPLES].to_pylist())
        sides["accepted"] = side_keep(accepted, is_met)
    if has_contents:
        return Matching(is_by_id=True, strangers=strangers)
    identity = Identity(str(id_type), Lifetime(None), first_unmatched=named if is_only_lane else ())
    return Matching(identity, strangers if is_only_lane else 0, True)


def _id_type(ids: pa.ChunkedArray) -> IdType:
    """What the history's ids are: compared as UUIDs or numbers only where all of them are."""
    for id_type in (IdType.UUID, IdType.BIGINT):
        if len(ids) and ids_canonical(ids, id_type).null_count == 0:
            return id_type
    return IdType.TEXT


def match_known(
    sides: Mapping[str, Side], files: Mapping[str, tuple[Path, Mapping[int, tuple[str, ...]], ReadOptions]]
) -> tuple[str, ...]:
    """Events of which the log did not hold every value meet by the values that it did hold, and this is said.

    Where everything known is equal the entry counts as the event's; what is unknown is neither equal nor different.
    """
    said = []
    for end, other in (("history", "accepted"), ("accepted", "history")):
        if end not in files or not files[end][1]:
            continue
        path, unknown, options = files[end]
        members = sorted({name for names in unknown.values() for name in names})
        said.append(
            f"{len(unknown):,} {'event holds' if len(unknown) == 1 else 'events hold'} no value for {', '.join(members)} in "
            f"--{end} {path.name} (unchanged, and so not in the log): contents were compared without, and nothing shows "
            f"whether they agree there. Such an event must be read from its table before it is sent again."
        )
        if len(unknown) <= COMPARED_AT_MOST:
            _settle(sides[end], sides[other], unknown, (path, options), (files[other][0], files[other][2]))
    return tuple(said)


def _settle(
    side: Side,
    other: Side,
    unknown: Mapping[int, tuple[str, ...]],
    own_file: tuple[Path, ReadOptions],
    other_file: tuple[Path, ReadOptions],
) -> None:
    rows = np.flatnonzero(np.isin(side.entry, list(unknown))).tolist()
    pairs = {row: np.flatnonzero(_same(side, row, other)).tolist() for row in rows}
    own = event_at(own_file[0], {int(side.entry[row]) for row in rows}, own_file[1])
    theirs = event_at(
        other_file[0], {int(other.entry[at]) for places in pairs.values() for at in places}, other_file[1]
    )
    side.words = side.words.copy()
    for row, places in pairs.items():
        mine = own.get(int(side.entry[row]))
        for at in places:
            entry = theirs.get(int(other.entry[at]))
            if (
                mine
                and entry
                and _known(mine, unknown[int(side.entry[row])]) == _known(entry, unknown[int(side.entry[row])])
            ):
                side.words[row] = other.words[at]
                break


def _same(side: Side, row: int, other: Side) -> np.ndarray:
    at: np.ndarray = other.position == side.position[row]
    if side.ordinal is not None or other.ordinal is not None:
        own = 0 if side.ordinal is None else side.ordinal[row]
        at = at & (own == (0 if other.ordinal is None else other.ordinal))
    return at


def _known(event: Mapping[str, Any], unknown: tuple[str, ...]) -> tuple[Any, ...]:
    content = event.get("value")
    known = (
        {name: item for name, item in content.items() if name not in unknown} if isinstance(content, dict) else content
    )
    return event.get("op"), event.get("key"), canonical(known)
