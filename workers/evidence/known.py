"""What the control database remembers of a pipeline, as one reading of both ends is given it, and what that found of it.

A reading knows its epoch only once it has seen which servers answered; what was remembered under another one decides
nothing of a lane, and its open items are judged all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.evidence_places import Stored
from recovery_api.domain.ledger.lanes import LaneFound, LaneKnown
from workers.connectors.readings import LaneReading, Reading
from workers.evidence import schemas
from workers.evidence.remembered import evidence_counts

ITEMS = pa.schema([*schemas.ITEM, ("epoch", pa.string())])
"""The ledger's rows as they are read: `is_this_epoch` is not known yet."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """`lanes`: by lane and epoch; `inherited`: by lane what other epochs leave to a new one. `items`: ITEMS. `epoch`: of the incarnation that the source says. `token`: changes with
    every merge, so that a reading can tell whether the ledger moved on meanwhile. `stored`: by its name the evidence that a
    lane keeps what is not kept as rows in, where that is kept still. `is_rebased`: the audit is one in
    full, by name: it takes what both ends hold as the new base."""

    lanes: Mapping[tuple[str, str], LaneKnown]
    items: pa.Table
    epoch: Callable[[str], str]
    token: str = ""
    is_rebased: bool = False
    inherited: Mapping[str, LaneKnown] = field(default_factory=dict)
    stored: Mapping[str, Stored] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Kept:
    """Where an earlier audit keeps what is not kept as rows. `is_everything`: every item of it, not only what it could
    not justify. `is_this_epoch`: it was seen under the scope, mapping and servers of this reading."""

    stored: Stored
    is_everything: bool
    is_this_epoch: bool = True


@dataclass(frozen=True, slots=True)
class Opened:
    """The ledger in the epoch of one reading. `gone`: lanes whose kept evidence is not what was written there."""

    ledger: Ledger
    epoch: str
    lanes: Mapping[str, LaneKnown]
    kept: Mapping[str, Kept]
    gone: frozenset[str] = field(default_factory=frozenset)

    @property
    def admitted_then(self) -> dict[str, int | None]:
        return {lane: known.admitted_below for lane, known in self.lanes.items()}

    def seen_below(self, lane: str) -> int | None:
        """Below which transaction of the sink every acceptance was judged, where what was not justified is known, too."""
        known = self.lanes.get(lane)
        return None if known is None or lane in self.gone else known.admitted_below

    def items(self) -> pa.Table:
        """The ledger's rows as schemas.ITEM, each with whether it is of this epoch."""
        items = self.ledger.items
        at = schemas.ITEM.get_field_index("is_this_epoch")
        is_this = pc.equal(items["epoch"], self.epoch)
        return items.select(schemas.ITEM.names).set_column(at, schemas.ITEM.field("is_this_epoch"), is_this)

    def item_lanes(self) -> list[str]:
        """The lanes that hold an item, whether or not either end still shows them."""
        return sorted(pc.unique(self.ledger.items["lane"]).to_pylist())


def epoch_open(ledger: Ledger, reading: Reading) -> tuple[str, dict[str, LaneKnown]]:
    """The epoch of this reading of the source, and what is remembered in it by lane."""
    epoch = ledger.epoch(incarnation_of(reading))
    mine = {lane: known for (lane, of), known in ledger.lanes.items() if of == epoch}
    return epoch, {**ledger.inherited, **mine}


def ledger_open(ledger: Ledger, reading: Reading) -> Opened:
    """The ledger for this reading of the source; what was kept with evidence is looked for."""
    epoch, lanes = epoch_open(ledger, reading)
    kept, gone = {}, set()
    for lane, known in lanes.items():
        if not known.evidence:
            continue
        stored = ledger.stored.get(known.evidence)
        if stored is not None and evidence_counts(stored, lane) == known.unjustifiable:
            kept[lane] = Kept(stored, not known.is_whole, (lane, epoch) in ledger.lanes)
        else:
            gone.add(lane)
    return Opened(ledger, epoch, lanes, kept, frozenset(gone))


def incarnation_of(reading: Reading) -> str:
    """What names the server, timeline and table that answered; "" where it cannot be seen."""
    return next((lane.safe.incarnation for lane in reading.lanes.values() if lane.safe.incarnation), "")


def admitted_now(sink_reading: Reading) -> int | None:
    """The oldest transaction of the sink that was open in this snapshot. None: the record does not show who admitted."""
    oldest = sink_reading.handle.get("oldest_open")
    return None if oldest is None else int(oldest)


def frontier_raise(chosen: Coordinate, known: LaneKnown | None) -> Coordinate:
    """No audit goes back behind an earlier one by itself: what was safe stays safe, and the rows there may be gone."""
    return chosen if known is None or known.frontier is None else max(chosen, known.frontier)


def lane_found(
    reading: LaneReading,
    frontier: Coordinate,
    source: Reading,
    sink: Reading,
    opened: Opened,
    prefix: Mapping[str, int],
    prefix_then: Mapping[str, int],
) -> LaneFound:
    """What a reading found of a lane that the ledger may learn. Where rows go by design, what went is not asked after."""
    return LaneFound(
        frontier=frontier,
        lowest=None if source.rows_go else reading.lowest,
        floor=None if source.rows_go else reading.floor,
        first_number=None if source.rows_go else reading.first_number,
        step=reading.numbers_step,
        admitted_below=admitted_now(sink),
        prefix=prefix,
        prefix_then=prefix_then,
        head=reading.head,
        has_evidence=reading.lane not in opened.gone,
    )
