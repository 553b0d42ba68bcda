"""What an audit leaves for the next one to go on from: how far each lane was judged, and what the record showed then.

The law: it is of one pair of ends, one scope and one mapping (its epoch), and of no other; what it says nothing of is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.evidence_places import Stored
from recovery_api.domain.ledger.blocks import ROUND, Block, Fingerprint


@dataclass(frozen=True, slots=True)
class Increment:
    """The last entries that came in: all that the snapshot `since` did not show and the reading after it did."""

    since: str
    entries: Fingerprint


@dataclass(frozen=True, slots=True)
class LaneBlocks:
    """A lane as it was judged: its blocks together are everything at or below `frontier`.

    `lowest` and `floor`: of the source then. `acknowledged`: a digest of the omissions that were known. `incarnation`: the
    source's. `above`: the fingerprint of the acceptances above `frontier` that the snapshot showed; None: it is not known.
    """

    frontier: Coordinate
    blocks: tuple[Block, ...]
    lowest: Coordinate | None
    floor: Coordinate | None
    acknowledged: str
    incarnation: str
    above: Fingerprint | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """What earlier audits judged. `snapshot`: what the record showed then; `directory`: the evidence of what they found.

    `increment`: the last one that was not empty; None: none is known. `promised`: within which every block is read again.
    `stored`: that evidence; None: it is not kept any more.
    """

    snapshot: str
    directory: str
    read_at: datetime
    lanes: Mapping[str, LaneBlocks] = field(default_factory=dict)
    increment: Increment | None = None
    promised: timedelta = ROUND
    stored: Stored | None = None
