"""The base of an image audit: what `Src` gave each key at a coordinate, as files of hashes and digests.

It is made of history and an earlier base, never of the target. One law: it counts only while its files are what was written,
under the incarnation and the mapping that the source and the target have now.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from recovery_api.domain.errors import EvidenceUnwritable, Unsuitable
from workers.evidence.archive.parts import file_digest
from workers.evidence.kernel.image import BASE_ROW
from workers.evidence.store import part_write

FILES = "base-*.parquet"


def base_write(directory: str, number: int, rows: pa.Table) -> None:
    """One set's share of the base."""
    part_write(directory, f"base-{number:05d}", rows)


def base_files(directory: str) -> list[str]:
    return sorted(str(path) for path in Path(directory).glob(FILES))


def base_digest(files: Sequence[str]) -> str:
    """One digest of all the files: their names, sizes and contents."""
    digest = hashlib.sha256()
    for file in files:
        size, held = file_digest(Path(file))
        digest.update(f"{Path(file).name} {size} {held}\n".encode())
    return digest.hexdigest()


def base_check(directory: str, written: str) -> list[str]:
    """The base's files. Raises: Unsuitable where they are not what was written."""
    try:
        files = base_files(directory)
        found = base_digest(files)
    except OSError as error:
        raise EvidenceUnwritable(directory, error.strerror or type(error).__name__) from error
    if found != written:
        problem = "its files are not what was written there, or some are gone"
        raise Unsuitable(f"the base at {directory}", problem, "Keep another one while the history is whole.")
    return files


def base_rows(file: str) -> Iterator[pa.RecordBatch]:
    """BASE_ROW of one file."""
    with pq.ParquetFile(file) as opened:
        for batch in opened.iter_batches(columns=BASE_ROW.names):
            yield batch.cast(BASE_ROW)
