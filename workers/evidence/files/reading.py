"""Several exports read at once, a process each where they are large, so that contents are digested on every processor.

The largest is read by the process that asks, so that one start and one interpreter's memory are saved. What was read lies
in a folder of its own as Arrow batches; nothing but names and counts crosses between processes.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from recovery_api.domain.errors import FencepostError
from workers.evidence.files.collecting import EVERY
from workers.evidence.files.events import EventFile, events_read
from workers.evidence.files.options import ReadOptions
from workers.evidence.files.spellings import SpellingSigns

LARGE_BYTES = 16 << 20
"""From this much input on, starting a process for each file is worth its second, and batches go to disk."""

Answer = tuple[EventFile, SpellingSigns]


@dataclass(frozen=True)
class Ask:
    """One export to read, as `events_read` takes it."""

    path: Path
    name: str
    options: ReadOptions
    wanted: frozenset[str] = EVERY


def files_read(asks: Mapping[str, Ask], signs: SpellingSigns, folder: Path) -> dict[str, EventFile]:
    """The files by end; what they show of spellings goes to `signs`. `folder`: for batches, empty, and kept meanwhile.

    Raises: BadFile, BadCoordinate, BadInput: of the first end, in the order asked.
    """
    is_large = sum(size_of(ask.path) for ask in asks.values()) >= LARGE_BYTES
    if not is_large or len(asks) < 2 or (os.cpu_count() or 1) < 2:
        return {
            end: events_read(ask.path, signs, ask.name, ask.options, ask.wanted, folder / end if is_large else None)
            for end, ask in asks.items()
        }
    own = max(asks, key=lambda end: size_of(asks[end].path))
    workers = min(len(asks), os.cpu_count() or 1) - 1
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _begin) as pool:
        futures = {end: pool.submit(_read, ask, folder / end) for end, ask in asks.items() if end != own}
        futures[own] = _read_here(asks[own], folder / own)
        answers = {end: futures[end].result() for end in asks}
    for _, seen in answers.values():
        signs.merge(seen)
    return {end: file for end, (file, _) in answers.items()}


def size_of(path: Path) -> int:
    """Bytes on disk of a file, or of everything in a folder; 0 where it is not there."""
    if path.is_dir():
        return sum(entry.stat().st_size for entry in path.rglob("*") if entry.is_file())
    return path.stat().st_size if path.exists() else 0


def _begin() -> None:
    from workers.evidence.without_pandas import leave_pandas_out

    leave_pandas_out()


def _read_here(ask: Ask, spool: Path) -> Future[Answer]:
    """As if another process had read it: an error waits for its turn."""
    done: Future[Answer] = Future()
    try:
        done.set_result(_read(ask, spool))
    except FencepostError as error:
        done.set_exception(error)
    return done


def _read(ask: Ask, spool: Path) -> Answer:
    signs = SpellingSigns()
    return events_read(ask.path, signs, ask.name, ask.options, ask.wanted, spool), signs
