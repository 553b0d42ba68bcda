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

    What follows a reading (staging, appending, inspecting its batch) runs where that was judged: `chosen`. What `opened`
    opens is opened when the first work is for it.
    """

    def __init__(self, rows: int, opened: Callable[[], Any]) -> None:
        self.rows = rows
        self._opened = opened
        self._session: Any = None
        self._is_here = False

    @property
    def is_opened(self) -> bool:
        """Whether the engine is open already."""
        return self._session is not None

    @property
    def chosen(self) -> Any:
        if self._is_here:
            return InProcess()
        if self._session is None:
            self._session = self._opened()
        return self._session

    def judged(self, readings: Iterable[Reading], judge: Callable[[Any, int | None], T]) -> T:
        """`judge(session, most)`'s answer; `most`: how many rows it may hold of one end's piece. None: any number."""
        if all(rows_estimated(reading) < self.rows for reading in readings):
            self._is_here = True
            try:
                return judge(self, READ_MORE * self.rows)
            except TooManyRows:
                pass  # the estimate was wrong
        self._is_here = False
        return judge(self, None)


def fewer_run(session: Any, rows: int, run: Callable[[Any, int | None], T]) -> T:
    """`run(session, most)`'s answer for work that reads about `rows` rows: in this process where that is few enough."""
    if isinstance(session, OnDemand) and rows < session.rows:
        try:
            return run(InProcess(), READ_MORE * session.rows)
        except TooManyRows:
            pass
    return run(session, None)


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
