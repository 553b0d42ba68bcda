"""What the archive holds of the events that are lost and gone at the source: looked for while both ends are judged.

The law: an event is sent from the archive only where its content there has the digest that was judged, in a file that is
what was written, read under the incarnation and the mapping that the source has now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from recovery_api.domain.archives import Part, Unusable, part_unusable
from recovery_api.domain.coordinates import Coordinate
from workers.connectors.readings import Reading
from workers.evidence.archive.parts import PartUnusable, is_as_digested, part_check, part_read
from workers.evidence.schemas import BATCH

PLACE = ["position", "ordinal"]
ORDER = [(name, "ascending") for name in PLACE]


@dataclass(frozen=True, slots=True)
class Archive:
    """The parts of a pipeline's archive. `mapping`: what the source is read as now. `unusable`: by a part's file why it
    serves no event now, as far as the source's reading shows that; empty until that was read (`opened`)."""

    parts: tuple[Part, ...]
    mapping: str
    unusable: Mapping[str, Unusable] = field(default_factory=dict)

    def opened(self, reading: Reading) -> Archive:
        """The archive for the source as it answers now. `reading`: the source's own, with what it says of itself."""
        incarnations = {lane: one.safe.incarnation for lane, one in reading.lanes.items()}
        found = {
            part.file: part_unusable(part, incarnations.get(part.lane, ""), self.mapping, read_to(reading))
            for part in self.parts
        }
        return replace(self, unusable={file: why for file, why in found.items() if why is not None})

    def of(self, lane: str, low: Coordinate, high: Coordinate) -> list[Part]:
        """The lane's parts that reach from `low` to `high`, both included, or into that: the newest first."""
        mine = [one for one in self.parts if one.lane == lane and one.high > low]
        return [one for one in reversed(mine) if one.low is None or one.low <= high]


def read_to(reading: Reading) -> int | None:
    """The first transaction number that the source had not given out when it was read; None: it has none."""
    seen = reading.handle.get("seen")
    return int(seen[1]) if seen else None


def archive_look(
    archive: Archive, lane: str, findings: pa.Table, history: pa.Table
) -> tuple[pa.Table, dict[str, int], dict[str, int]]:
    """The findings with `is_archived` where the archive holds the content of a lost event that is gone; how many those
    are; and of the others, by Unusable, why not. Acknowledged ones are not looked for: they are never sent."""
    gone = gone_rows(findings)
    if not gone.num_rows:
        return findings, {}, {}
    taken = gone.join(_places(history), PLACE, join_type="left semi").select(gone.column_names)
    wanted = gone.join(_places(history), PLACE, join_type="left anti").select(gone.column_names)
    held, whys = _held(archive, lane, wanted)
    refused = Counter(why.value for why in whys.values())
    for row in wanted.join(held, [*PLACE, "digest"], join_type="left anti").select(PLACE).to_pylist():
        if (row["position"], row["ordinal"]) not in whys:
            refused[Unusable.ABSENT.value] += 1
    if taken.num_rows:
        refused[Unusable.OCCUPIED.value] += taken.num_rows
    return _flagged(findings, held), {"held": held.num_rows}, dict(refused)


def archive_look_again(
    archive: Archive | None, lane: str, findings: pa.Table
) -> tuple[pa.Table, dict[str, int], dict[str, int]]:
    """As `archive_look`, of findings that an earlier audit looked at: of what it did not find nothing is found now, since
    what the source holds at these coordinates was not read again. `archive` None: there is none."""
    if archive is None:
        return findings, {}, {}
    at = findings.schema.get_field_index("is_archived")
    then = pc.fill_null(findings["is_archived"], False)
    found, told, refused = archive_look(archive, lane, findings, findings.slice(0, 0))
    now = pc.and_(then, pc.fill_null(found["is_archived"], False))
    count = int(pc.sum(now).as_py() or 0)
    if missed := told.get("held", 0) - count:
        refused = {**refused, Unusable.ABSENT.value: refused.get(Unusable.ABSENT.value, 0) + missed}
    return found.set_column(at, findings.schema.field(at), now), {"held": count}, refused


def gone_rows(findings: pa.Table) -> pa.Table:
    """Position, ordinal and digest of the lost events that the source does not hold and nobody acknowledged, each once."""
    is_gone = pc.and_(pc.equal(findings["finding"], "lost"), pc.invert(pc.fill_null(findings["is_retained"], True)))
    wanted = pc.and_(is_gone, pc.invert(pc.fill_null(findings["is_acknowledged"], False)))
    rows = findings.filter(wanted).select([*PLACE, "history_digest"]).rename_columns([*PLACE, "digest"])
    return rows.group_by([*PLACE, "digest"]).aggregate([]).sort_by(ORDER)


def _held(archive: Archive, lane: str, wanted: pa.Table) -> tuple[pa.Table, dict[tuple[int, int], Unusable]]:
    """Those of `wanted` that a part holds with this digest, and by place why a part that should hold one does not."""
    found, whys = [wanted.slice(0, 0)], dict[tuple[int, int], Unusable]()
    if not wanted.num_rows:
        return wanted, whys
    order = list(Unusable)
    for part in archive.of(lane, *_ends(wanted)):
        mine = wanted.filter(covered(wanted, part))
        if not mine.num_rows:
            continue
        why = archive.unusable.get(part.file)
        try:
            if why is None:
                part_check(part)
                genuine, false = _found_in(part, mine)
                found.append(genuine)
                whys |= dict.fromkeys(_pairs(false), Unusable.ALTERED)
        except PartUnusable as error:
            (why,) = error.args
        if why is not None:
            for place in _pairs(mine):
                whys[place] = min(whys.get(place, why), why, key=order.index)
    held = pa.concat_tables(found).group_by([*PLACE, "digest"]).aggregate([])
    there = set(_pairs(held))
    return held, {place: why for place, why in whys.items() if place not in there}


def _found_in(part: Part, wanted: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Those of `wanted` that the part holds: with a content that has that digest, and with one that has not.

    Raises: PartUnusable.
    """
    genuine, false = [wanted.slice(0, 0)], [wanted.slice(0, 0)]
    keys = [*PLACE, "payload_digest"]
    asked = wanted.rename_columns(keys)
    for group in part_read(part, [*BATCH.names, "payload_digest"]):
        met = group.join(asked, keys, join_type="left semi").select(group.column_names)
        if met.num_rows:
            is_genuine = pa.array([is_as_digested(row) for row in met.to_pylist()], pa.bool_())
            rows = met.select(keys).rename_columns(wanted.column_names).cast(wanted.schema)
            genuine.append(rows.filter(is_genuine))
            false.append(rows.filter(pc.invert(is_genuine)))
    return pa.concat_tables(genuine), pa.concat_tables(false)


def covered(rows: pa.Table, part: Part) -> pa.Array:
    """Which rows lie in the part's range."""
    position, ordinal = rows["position"].to_numpy(), rows["ordinal"].to_numpy()
    high = part.high
    found = (position < high.position) | ((position == high.position) & (ordinal < high.ordinal))
    if (low := part.low) is not None:
        found &= (position > low.position) | ((position == low.position) & (ordinal >= low.ordinal))
    return pa.array(found)


def _flagged(findings: pa.Table, held: pa.Table) -> pa.Table:
    at = findings.schema.get_field_index("is_archived")
    marked = held.rename_columns([*PLACE, "history_digest"]).append_column(
        "is_found", pa.repeat(pa.scalar(True), held.num_rows)
    )
    numbered = findings.append_column("row", pa.array(range(findings.num_rows), pa.int64()))
    met = numbered.select(["row", *PLACE, "history_digest"]).join(
        marked, [*PLACE, "history_digest"], join_type="left outer"
    )
    flags = pc.fill_null(met.sort_by("row")["is_found"], False)
    is_lost = pc.and_(pc.equal(findings["finding"], "lost"), pc.invert(pc.fill_null(findings["is_retained"], True)))
    return findings.set_column(at, findings.schema.field(at), pc.and_(flags, is_lost))


def _places(history: pa.Table) -> pa.Table:
    return history.select(PLACE).group_by(PLACE).aggregate([])


def _pairs(rows: pa.Table) -> Iterator[tuple[int, int]]:
    return zip(rows["position"].to_pylist(), rows["ordinal"].to_pylist(), strict=True)


def _ends(rows: pa.Table) -> tuple[Coordinate, Coordinate]:
    pairs = list(_pairs(rows))
    return Coordinate(*min(pairs)), Coordinate(*max(pairs))


def told_sum(summaries: list[dict[str, Any]]) -> tuple[int, dict[str, int]]:
    """Over the summaries of ranges: how many events the archive holds, and why not the others."""
    held, refused = 0, Counter[str]()
    for summary in summaries:
        held += summary.get("archived", {}).get("held", 0)
        refused.update(summary.get("unarchived", {}))
    return held, dict(refused)
