"""From what lies on disk to text in UTF-8: folders, gzip, zstd, UTF-16. A stream that breaks off is named, not hidden."""

from __future__ import annotations

import codecs
import zlib
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from recovery_api.domain.errors import BadFile
from workers.evidence.files.notes import FileNotes

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
START_BYTES = 1 << 16
READ_BYTES = 1 << 16
"""Read at a time. What a stretch of this size is parsed to stays in the processor's cache; four times as much does not."""
_COMPRESSED = {".gz": "gzip", ".gzip": "gzip", ".zst": "zstd", ".zstd": "zstd"}


def parts_of(path: Path, notes: FileNotes) -> list[Path]:
    """The files to read: the path itself, or a folder's parts in the order of their names (hidden files and files that
    begin with an underscore are the writer's own). A folder of Spark's without its mark of success is named as not whole.

    Raises: BadFile.
    """
    if not path.is_dir():
        return [path]
    try:
        files = [entry for entry in sorted(path.rglob("*")) if entry.is_file()]
    except PermissionError as error:
        raise BadFile(notes.name, str(path), f"cannot be read: {error.strerror}", "") from error
    within = [(entry, entry.relative_to(path).parts) for entry in files]
    parts = [entry for entry, names in within if not any(name.startswith(("_", ".")) for name in names)]
    parts = [entry for entry in parts if not entry.name.endswith(".crc")]
    if not parts:
        raise BadFile(notes.name, str(path), "is a folder without a file to read", "")
    suffixes = {_suffix(part) for part in parts}
    if len(suffixes) > 1:
        raise BadFile(
            notes.name, str(path), f"holds files of several kinds: {', '.join(sorted(suffixes))}", "Give one kind."
        )
    is_sparks = any(part.name.startswith("part-") for part in parts)
    if is_sparks and not (path / "_SUCCESS").exists():
        notes.blemish("unfinished folder", 0, -1, "no _SUCCESS is there, so its writer may not have finished")
    return parts


def _suffix(path: Path) -> str:
    suffixes = [suffix for suffix in path.suffixes if suffix.lower() not in _COMPRESSED]
    return suffixes[-1].lower() if suffixes else ""


def suffix_of(path: Path) -> str:
    """The suffix that says what a file holds, whatever it is compressed with: `a.csv.gz` is `.csv`."""
    return _suffix(path)


@contextmanager
def text_open(path: Path, notes: FileNotes) -> Iterator[Utf8]:
    """The file as a stream of UTF-8 bytes with readline. Raises: BadFile where it cannot be opened."""
    try:
        file: Any = path.open("rb")
    except OSError as error:
        raise BadFile(path.name, str(path), f"cannot be opened: {error.strerror}", "") from error
    with file:
        start = file.read(4)
        file.seek(0)
        if start.startswith(GZIP):
            import gzip

            notes.mild["gzip"] += 1
            stream: Any = gzip.GzipFile(fileobj=file)
        elif start.startswith(ZSTD):
            import pyarrow as pa

            notes.mild["zstd"] += 1
            stream = pa.CompressedInputStream(file, "zstd")
        else:
            stream = file
        yield Utf8(stream, notes)


class Utf8:
    """Bytes in UTF-8. `broken`: why the stream ended before its end, or None."""

    def __init__(self, stream: Any, notes: FileNotes) -> None:
        self.broken: str | None = None
        self._stream, self._rest, self._is_over = stream, b"", False
        start = self._more()
        self._decoder: Any = None
        if encoding := _utf16(start):
            notes.mild["UTF-16"] += 1
            self._decoder = codecs.getincrementaldecoder(encoding)("surrogatepass")
            start = self._utf8(start)
        self._rest = start

    def start(self, size: int = START_BYTES) -> bytes:
        """The first bytes, without taking them."""
        while len(self._rest) < size and not self._is_over:
            self._rest += self._next()
        return self._rest[:size]

    def read(self) -> bytes:
        """Some bytes; none at the end."""
        taken, self._rest = self._rest, b""
        while not taken and not self._is_over:
            taken = self._next()
        return taken

    def chunks(self, limit: int) -> Iterator[tuple[list[bytes], bool]]:
        """Lines without their ends, many at once, and whether the last of them had one.

        A line longer than `limit` comes as what was read of it, and is the last.
        """
        parts = [self._rest]
        self._rest = b""
        length = 0
        while True:
            cut = parts[-1].split(b"\n")
            if len(cut) > 1:
                if len(parts) > 1:
                    cut[0] = b"".join([*parts[:-1], cut[0]])
                parts, length = [cut.pop()], 0
                yield cut, True
            length += len(parts[-1])
            if length > limit or self._is_over:
                break
            parts.append(self._next())
        if rest := b"".join(parts):
            yield [rest], False

    def _next(self) -> bytes:
        more = self._more()
        if self._decoder is None:
            return more
        return self._utf8(more)

    def _utf8(self, data: bytes) -> bytes:
        try:
            text = self._decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            self.broken, self._is_over = f"its UTF-16 breaks off ({error.reason})", True
            return b""
        return bytes(text.encode("utf-8", "surrogatepass"))

    def _more(self) -> bytes:
        if self._is_over:
            return b""
        try:
            more: bytes = self._stream.read(READ_BYTES)
        except (EOFError, OSError, zlib.error) as error:
            self.broken = f"its compressed stream breaks off ({error})"
            more = b""
        self._is_over = not more
        return more


class Picked:
    """Some lines of a stream, by their number from 0, as if it held no others."""

    def __init__(self, stream: Utf8, numbers: set[int]) -> None:
        self._stream, self._numbers = stream, sorted(numbers)

    @property
    def broken(self) -> str | None:
        return self._stream.broken

    def chunks(self, limit: int) -> Iterator[tuple[list[bytes], bool]]:
        """As Utf8.chunks; it stops after the last of them."""
        first = at = 0
        for lines, is_ended in self._stream.chunks(limit):
            end = bisect_left(self._numbers, first + len(lines), at)
            if end > at:
                yield [lines[number - first] for number in self._numbers[at:end]], is_ended
            first, at = first + len(lines), end
            if at == len(self._numbers):
                return


class Resumed:
    """A stream of which some was taken: the stretch that was looked at last, and what follows it."""

    def __init__(self, last: tuple[list[bytes], bool], rest: Iterator[tuple[list[bytes], bool]], stream: Utf8) -> None:
        self._last, self._rest, self._stream = last, rest, stream

    @property
    def broken(self) -> str | None:
        return self._stream.broken

    def chunks(self, limit: int) -> Iterator[tuple[list[bytes], bool]]:
        """As Utf8.chunks, with the limit that the stream was begun with."""
        yield self._last
        yield from self._rest


def _utf16(start: bytes) -> str | None:
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if len(start) >= 4 and start[1] == 0 and start[3] == 0 and start[0] and start[2]:
        return "utf-16-le"
    if len(start) >= 4 and start[0] == 0 and start[2] == 0 and start[1] and start[3]:
        return "utf-16-be"
    return None
