"""Accepted entries without an owed row, at a source with a filter: left out by it, or never committed?

One law: nobody owes what a filter leaves out, and yet it was committed. So whoever reads *never committed* is told how
many of these entries the table does hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow.dataset as ds

from recovery_api.domain.coordinates import coordinate_format
from recovery_api.domain.evidence_places import Stored
from recovery_api.domain.findings import Cause
from workers.connectors.protocols.source import FilteredSource, Source
from workers.connectors.readings import Reading
from workers.evidence.schemas import FINDING
from workers.evidence.store import FINDINGS, rows_head

LOOKED_AT = 1000
NAMED = 5


def left_out_tell(source: Source, reading: Reading, stored: Stored, summaries: Sequence[Mapping[str, Any]]) -> Reading:
    """The reading with a sentence about the entries that its filter explains; as it is, where there is nothing to say.

    The first LOOKED_AT entries are looked for, in the reading's own snapshot.
    """
    count = sum(summary["counts"].get("premature_never_committed", 0) for summary in summaries)
    if not count or not isinstance(source, FilteredSource) or not source.has_filter:
        return reading
    wanted = ds.field("cause") == Cause.NEVER_COMMITTED.value
    columns = ["lane", "position", "ordinal"]
    looked_at = rows_head(stored, FINDINGS, FINDING, LOOKED_AT, columns, wanted)
    found = source.left_out(reading, looked_at)
    among = f"{count:,}" if count <= LOOKED_AT else f"first {LOOKED_AT:,}"
    if not found:
        says = f"None of the {among} entries that were never committed is a row that the filter leaves out."
    else:
        more = ", …" if len(found) > NAMED else ""
        named = ", ".join(coordinate_format(one, source.spelling) for one in found[:NAMED])
        says = (
            f"{len(found):,} of the {among} entries shown as never committed are committed rows that the filter leaves"
            f" out ({named}{more}): the sink accepted them, and nobody owes them."
        )
    return replace(reading, weaknesses=(*reading.weaknesses, says))
