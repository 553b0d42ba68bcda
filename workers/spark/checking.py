"""What an executor reaches: the store of evidence, and each end, as a task of a job would open it.

The sentences are the errors' own, so that a check and a job that failed say the same.
"""

from __future__ import annotations

import functools
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from recovery_api.domain.errors import EvidenceGone, EvidenceUnwritable, FencepostError
from recovery_api.domain.evidence_places import uri_of, url_below
from workers.evidence.folder import folder_error
from workers.evidence.places import object_get, object_put, object_remove, store_probe
from workers.evidence.ranges import EndSpec
from workers.spark.slots import slots_of
from workers.spark.tasks import summary_row, tasks_run

TASKS_MOST = 64
"""Each opens a connection to each end."""


@dataclass(frozen=True, slots=True)
class Reached:
    """One thing that executors need. `problems`: what each distinct answer was, with the hosts that gave it; none: all is well.
    `hosts`: on which it was tried."""

    what: str
    hosts: tuple[str, ...]
    problems: Mapping[str, tuple[str, ...]]


def reach_check(
    session: Any, store: str, sources: Mapping[str, EndSpec], sinks: Mapping[str, EndSpec]
) -> list[Reached]:
    """The store, and each end by its name, tried by tasks on as many executors as there are. Raises: what a job raises."""
    place, name = url_below(store, "checks"), f"check-{secrets.token_hex(8)}"
    object_put(place, name, b"fencepost")
    tries: list[tuple[str, Callable[[], None]]] = [(f"evidence at {uri_of(store)}", _Probe(place, name))]
    tries += [(f"source {name}", _Opened(end, "source")) for name, end in sources.items()]
    tries += [(f"sink {name}", _Opened(end, "sink")) for name, end in sinks.items()]
    count = min(slots_of(session), TASKS_MOST)
    try:
        rows = tasks_run(session, count, _over(tries))
    finally:
        object_remove(place, name)
    return [_reached(what, at, rows) for at, (what, _) in enumerate(tries)]


def _reached(what: str, at: int, rows: Sequence[Mapping[str, Any]]) -> Reached:
    problems: dict[str, set[str]] = {}
    for row in rows:
        if row["told"][at]:
            problems.setdefault(row["told"][at], set()).add(row["host"])
    said = {text: tuple(sorted(hosts)) for text, hosts in problems.items()}
    return Reached(what, tuple(sorted({row["host"] for row in rows})), said)


def _over(
    tries: Sequence[tuple[str, Callable[[], None]]],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                yield summary_row(index, "", functools.partial(_told, tries))

    return run


def _told(tries: Sequence[tuple[str, Callable[[], None]]]) -> dict[str, Any]:
    return {"host": socket.gethostname(), "told": [_tried(each) for _, each in tries]}


def _tried(each: Callable[[], None]) -> str:
    try:
        each()
    except FencepostError as error:
        return str(error)
    except OSError as error:
        if (away := folder_error(error)) is None:
            raise
        return str(away)
    return ""


@dataclass(frozen=True, slots=True)
class _Probe:
    """Writes there, and reads what the checking process put: a folder by the same name may be another one."""

    url: str
    name: str

    def __call__(self) -> None:
        store_probe(self.url)
        try:
            object_get(self.url, self.name)
        except EvidenceGone as error:
            reason = "what another process put there is not seen, so it is another folder by the same name"
            raise EvidenceUnwritable(uri_of(self.url), reason) from error


@dataclass(frozen=True, slots=True)
class _Opened:
    """Opens what a task opens: the end's snapshot, by its reference, from where the task runs."""

    end: EndSpec
    side: str

    def __call__(self) -> None:
        end = self.end.source() if self.side == "source" else self.end.record()
        with end.hold_snapshot():
            pass
