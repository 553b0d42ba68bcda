"""Small sides are judged in this process: a Spark job costs more than reading them.

The law: an estimate chooses, and what is really read decides. Sides that turn out larger than was estimated are judged
again on the engine, by the same snapshots, so neither a wrong estimate nor stale statistics fill this process's memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import pyarrow as pa

from workers.connectors.readings import Reading
from workers.spark.tasks import Choosing, InProcess

T = TypeVar("T")

READ_MORE = 4
"""So many times the rows that may be estimated may really be read in one piece before the engine takes over."""


class TooManyRows(Exception):
    """A piece of work reads more rows than this process is meant to hold."""


class OnDemand(Choosing):
    """In place of a session: this process while both ends have fewer than `rows` rows, else what `opened` opens.

    What follows a reading (staging, appending, inspecting its batch) runs where that was judged: `chosen`.
    """

    def __init__(self, rows: int, opened: Callable[[], Any]) -> None:
        self.rows = rows
        self._opened = opened
        self._session: Any = None

    def judged(self, readings: Iterable[Reading], judge: Callable[[Any, int | None], T]) -> T:
        """`judge(session, most)`'s answer; `most`: how many rows it may hold of one end's piece. None: any number."""
        if all(rows_estimated(reading) < self.rows for reading in readings):
            self.chosen = InProcess()
            try:
                return judge(self.chosen, READ_MORE * self.rows)
            except TooManyRows:
                pass  # the estimate was wrong
        if self._session is None:
            self._session = self._opened()
        self.chosen = self._session
        return judge(self.chosen, None)


def rows_estimated(reading: Reading) -> int:
    """About how many rows an end has, as its reading says."""
    return sum(lane.estimated_rows for lane in reading.lanes.values())


def counted(batches: Iterator[pa.RecordBatch], most: int | None) -> Iterator[pa.RecordBatch]:
    """The batches of one piece of work as they come. Raises: TooManyRows once they hold more than `most` rows."""
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        if most is not None and rows > most:
            raise TooManyRows
        yield batch
