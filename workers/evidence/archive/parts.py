"""A part of the archive as a Parquet file: what lies in it, and that it is what was written.

A file is encoded under another name, flushed, and renamed into place: half a file never has a part's name.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from recovery_api.domain.archives import Part, Unusable
from recovery_api.domain.errors import Unsuitable
from workers.connectors.rows import payload_of
from workers.evidence.schemas import COORDINATE, HISTORY

ARCHIVED = pa.schema([*COORDINATE, *(HISTORY.field(name) for name in HISTORY.names[3:]), ("content", pa.string())])
"""A committed event, and its content as JSON text (null where it has none): all that a delivery needs."""
HASHED_AT_ONCE = 1 << 20
FOLDER_MODE, FILE_MODE = 0o700, 0o600


class PartUnusable(Exception):
    """A part's file is not what was written: `args[0]` is the Unusable."""


class PartWriter:
    """One file in the making. `close` gives its size and digest; `discard` takes away what there is of it."""

    def __init__(self, folder: Path) -> None:
        for one in (folder.parent, folder):
            one.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        self.name = f"{os.urandom(12).hex()}.parquet"
        self._final, self._attempt = folder / self.name, folder / f".{self.name}.writing"
        opened = os.open(self._attempt, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
        self._file = os.fdopen(opened, "wb")
        self._parquet = pq.ParquetWriter(self._file, ARCHIVED, compression="zstd")

    def write(self, rows: pa.Table) -> None:
        """More rows, as groups of their own: what is in memory is one table."""
        self._parquet.write_table(rows)

    def close(self) -> tuple[str, int, str]:
        """The file's path, size and SHA-256. It is on the disk, whole, under its name."""
        self._parquet.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        size, digest = file_digest(self._attempt)
        self._attempt.replace(self._final)
        return str(self._final), size, digest

    def discard(self) -> None:
        """Takes away what there is of the file. What a full folder, or one that is away, answers to that is no news."""
        with contextlib.suppress(OSError, pa.ArrowException):  # else it ends itself later, on a closed file
            self._parquet.close()
        with contextlib.suppress(OSError):
            self._file.close()
        with contextlib.suppress(OSError):
            self._attempt.unlink(missing_ok=True)


def file_digest(path: Path) -> tuple[int, str]:
    """Size and SHA-256 of a file's bytes, read in small pieces."""
    size, digest = 0, hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(HASHED_AT_ONCE):
            size += len(piece)
            digest.update(piece)
    return size, digest.hexdigest()


def part_check(part: Part) -> None:
    """Raises: PartUnusable where the file is away, or its bytes are not those that were written."""
    try:
        found = file_digest(Path(part.file))
    except OSError as error:
        raise PartUnusable(Unusable.AWAY) from error
    if found != (part.bytes, part.file_digest):
        raise PartUnusable(Unusable.ALTERED)


def files_missing(parts: Iterable[Part]) -> int:
    """How many of these files are away, or of another size than was written. Looks at nothing but that."""
    missing = 0
    for part in parts:
        try:
            missing += Path(part.file).stat().st_size != part.bytes
        except OSError:
            missing += 1
    return missing


def is_as_digested(event: Mapping[str, Any]) -> bool:
    """Whether a row's operation, key and content have the payload digest that stands beside them."""
    try:
        return bool(payload_of(event) == event["payload_digest"])
    except Unsuitable:
        return False


def part_read(part: Part, columns: list[str]) -> Iterator[pa.Table]:
    """The part's rows, a row group at a time. Raises: PartUnusable."""
    try:
        with pq.ParquetFile(part.file) as file:
            for group in range(file.num_row_groups):
                yield file.read_row_group(group, columns=columns)
    except FileNotFoundError as error:
        raise PartUnusable(Unusable.AWAY) from error
    except (OSError, pa.ArrowInvalid) as error:
        raise PartUnusable(Unusable.ALTERED) from error
