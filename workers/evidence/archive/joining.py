"""Several parts of the archive as one: the same rows, and one file to keep.

The law: nothing goes into it that is not what was written, by each file's size and SHA-256 and by count and digest of its
rows. The files that it was made of are left alone here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from recovery_api.domain.archives import Part, Unusable
from workers.evidence.archive.parts import ARCHIVED, PartUnusable, PartWriter, part_check, part_read
from workers.evidence.batch import rows_digest
from workers.evidence.canonical import batch_digest_add

WRITTEN_AT_ONCE = 8 * 2**20
"""Bytes in memory before they become a row group."""


def parts_join(parts: Sequence[Part], url: str) -> Part:
    """One part that holds the rows of these, each of which begins where the one before it ends. Its file is whole, there.

    Raises: PartUnusable where a file is not what was written; OSError, EvidenceUnwritable where none can be written.
    """
    writer = PartWriter(url)
    try:
        for rows in _gathered(parts):
            writer.write(rows)
        file, size, digest = writer.close()
    except BaseException:
        writer.discard()
        raise
    return replace(
        parts[0],
        high=parts[-1].high,
        rows=sum(part.rows for part in parts),
        bytes=size,
        digest=batch_digest_add(*(part.digest for part in parts)),
        file=file,
        file_digest=digest,
        read_to=max((part.read_to for part in parts if part.read_to is not None), default=None),
    )


def _gathered(parts: Sequence[Part]) -> Iterator[pa.Table]:
    held: list[pa.Table] = []
    for part in parts:
        held.append(_whole(part))
        if sum(rows.nbytes for rows in held) >= WRITTEN_AT_ONCE:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)


def _whole(part: Part) -> pa.Table:
    """The part's rows. Raises: PartUnusable."""
    part_check(part)
    rows = pa.concat_tables([ARCHIVED.empty_table(), *part_read(part, ARCHIVED.names)])
    if (rows.num_rows, rows_digest(rows)) != (part.rows, part.digest):
        raise PartUnusable(Unusable.ALTERED)
    return rows
