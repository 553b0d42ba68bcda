"""A part of the archive as a Parquet file: what lies in it, and that it is what was written.

In a folder a file is encoded under another name, flushed, and renamed into place; for a bucket it is encoded in memory and put
at once, or as several objects where one row is larger than that (`files`). So half a file never has a part's name.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from recovery_api.domain.archives import Part, Unusable
from recovery_api.domain.errors import AccessDenied, EvidenceGone, EvidenceUnwritable, FencepostError, Unsuitable
from recovery_api.domain.evidence_places import place_parse, uri_of, url_below, url_split
from workers.connectors.rows import payload_of
from workers.evidence.archive.files import file_get, file_of, file_put
from workers.evidence.places import objects_sizes
from workers.evidence.schemas import COORDINATE, HISTORY

ARCHIVED = pa.schema([*COORDINATE, *(HISTORY.field(name) for name in HISTORY.names[3:]), ("content", pa.string())])
"""A committed event, and its content as JSON text (null where it has none): all that a delivery needs."""
HASHED_AT_ONCE = 1 << 20
FOLDER_MODE, FILE_MODE = 0o700, 0o600
PUT_BYTES = 4 * 2**20
"""From here on a file for a bucket is put: the rows that may still come in at once keep it below what Arrow sends in pieces."""


class PartUnusable(Exception):
    """A part's file is not what was written: `args[0]` is the Unusable."""


class PartWriter:
    """One file in the making, at a folder or in a bucket. `close` gives its size and digest; `discard` takes away what there is
    of it."""

    def __init__(self, url: str) -> None:
        self.name = f"{os.urandom(12).hex()}.parquet"
        self._url, place = url, place_parse(url)
        self._attempt: Path | None = None
        self._file: BinaryIO = io.BytesIO()
        if place.is_folder:
            folder = Path(place.path)
            for one in (folder.parent, folder):
                one.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            self._final, self._attempt = folder / self.name, folder / f".{self.name}.writing"
            opened = os.open(self._attempt, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
            self._file = os.fdopen(opened, "wb")
        self._parquet = pq.ParquetWriter(self._file, ARCHIVED, compression="zstd")

    @property
    def is_full(self) -> bool:
        """Whether it is as large as one put may be. In a folder nothing is too large."""
        return self._attempt is None and self._file.tell() >= PUT_BYTES

    def write(self, rows: pa.Table) -> None:
        """More rows, as groups of their own: what is in memory is one table, and for a bucket the file."""
        self._parquet.write_table(rows)

    def close(self) -> tuple[str, int, str]:
        """Where the file lies, its size and SHA-256. It is there, whole, under its name.

        Raises: OSError of a folder; EvidenceUnwritable of a bucket.
        """
        self._parquet.close()
        if self._attempt is None:
            return self._put()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        size, digest = file_digest(self._attempt)
        self._attempt.replace(self._final)
        return url_below(self._url, self.name), size, digest

    def _put(self) -> tuple[str, int, str]:
        assert isinstance(self._file, io.BytesIO)
        body = self._file.getvalue()
        try:
            file_put(self._url, self.name, body)
        except AccessDenied as error:
            raise EvidenceUnwritable(uri_of(self._url), error.args[1]) from error
        return url_below(self._url, self.name), len(body), hashlib.sha256(body).hexdigest()

    def discard(self) -> None:
        """Takes away what there is of the file. What a full folder, or one that is away, answers to that is no news."""
        with contextlib.suppress(OSError, pa.ArrowException):  # else it ends itself later, on a closed file
            self._parquet.close()
        with contextlib.suppress(OSError):
            self._file.close()
        with contextlib.suppress(OSError):
            if self._attempt is not None:
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
    """Raises: PartUnusable where the file is away, or its bytes are not those that were written; EvidenceUnwritable and
    AccessDenied where a bucket does not say."""
    try:
        if (body := _body(part)) is None:
            found = file_digest(_path(part))
        else:
            found = len(body), hashlib.sha256(body).hexdigest()
    except OSError as error:
        raise PartUnusable(Unusable.AWAY) from error
    if found != (part.bytes, part.file_digest):
        raise PartUnusable(Unusable.ALTERED)


def files_missing(parts: Iterable[Part]) -> int:
    """How many of these files are away, or of another size than was written. Looks at nothing but that, place by place; of a
    bucket that does not answer nothing is said."""
    places: dict[str, list[Part]] = defaultdict(list)
    missing = 0
    for part in parts:
        missing += part.is_elsewhere
        if not part.is_elsewhere:
            places[url_split(part.file)[0]].append(part)
    for url, mine in places.items():
        sizes: dict[str, int] = defaultdict(int)
        try:
            for name, size in objects_sizes(url).items():
                sizes[file_of(name)] += size
        except FencepostError:
            if not place_parse(url).is_folder:
                continue
        missing += sum(sizes.get(url_split(part.file)[1]) != part.bytes for part in mine)
    return missing


def _path(part: Part) -> Path:
    return Path(place_parse(part.file).path)


def _body(part: Part) -> bytes | None:
    """What a bucket holds of the part. None: it lies in a folder. Raises: PartUnusable; EvidenceUnwritable; AccessDenied."""
    url, name = url_split(part.file)
    if place_parse(url).is_folder:
        return None
    try:
        return file_get(url, name, part.bytes)
    except EvidenceGone as error:
        raise PartUnusable(Unusable.AWAY) from error


def is_as_digested(event: Mapping[str, Any]) -> bool:
    """Whether a row's operation, key and content have the payload digest that stands beside them."""
    try:
        return bool(payload_of(event) == event["payload_digest"])
    except Unsuitable:
        return False


def part_read(part: Part, columns: list[str]) -> Iterator[pa.Table]:
    """The part's rows, a row group at a time. Raises: as `part_check`."""
    body = _body(part)
    try:
        with pq.ParquetFile(_path(part) if body is None else pa.BufferReader(body)) as file:
            for group in range(file.num_row_groups):
                yield file.read_row_group(group, columns=columns)
    except FileNotFoundError as error:
        raise PartUnusable(Unusable.AWAY) from error
    except (OSError, pa.ArrowInvalid) as error:
        raise PartUnusable(Unusable.ALTERED) from error
