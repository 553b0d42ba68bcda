"""Whether a source's table or slot is over what was declared to be well.

The law: what was not read shows nothing, so an alert stays as it is. A slot that is lost or gone has no room, whatever its server
leaves out of the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from recovery_api.domain.headroom.seen import EndSeen, SlotSeen, growth_per_hour


class Over(NamedTuple):
    """`says` "": nothing is over its bound. `number`: the table's bytes where that is over, else 0."""

    says: str
    number: int = 0


def over_bounds(
    seen: Sequence[EndSeen], most_table_bytes: int | None, least_slot_room_bytes: int | None
) -> Over | None:
    """The newest reading first; beside it the earlier ones, for growth. None: it cannot be told.

    Bounds in bytes; None: there is none.
    """
    if not seen:
        return None
    newest, found, number, is_told = seen[0], [], 0, True
    if most_table_bytes is not None:
        if newest.table_bytes is None:
            is_told = False
        elif newest.table_bytes > most_table_bytes:
            number = newest.table_bytes
            found.append(f"The source's table has {number:,} bytes; {most_table_bytes:,} are declared to be well.")
            if grows := growth_per_hour([(one.read_at, one.table_bytes) for one in seen]):
                found.append(f"It grew by up to {round(grows):,} bytes an hour.")
    if least_slot_room_bytes is not None:
        says = _slot_says(newest.slot, least_slot_room_bytes, [one.slot for one in seen[1:]])
        is_told = is_told and says is not None
        found += [says] if says else []
    return Over(" ".join(found), number) if found or is_told else None


def _slot_says(slot: SlotSeen | None, least: int, before: Sequence[SlotSeen | None]) -> str | None:
    """What is wrong; "": nothing. None: it was not read, or is not one of this source."""
    if slot is None or slot.problem:
        return None
    if not slot.is_there:
        was_there = any(one is not None and one.name == slot.name and one.is_there for one in before)
        return f"The slot {slot.name} is gone: somebody dropped it." if was_there else None
    if slot.lost_because or slot.wal_status == "lost":
        because = f" ({slot.lost_because})" if slot.lost_because else ""
        return f"The slot {slot.name} is lost{because}: the WAL that it kept is gone."
    if slot.wal_status == "unreserved":
        return f"The slot {slot.name} is unreserved: the next checkpoint may take its WAL away."
    if slot.room_bytes is not None and slot.room_bytes < least:
        room = max(slot.room_bytes, 0)
        return f"The slot {slot.name} may keep {room:,} bytes of WAL more; {least:,} are asked for."
    return ""
