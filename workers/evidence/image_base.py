"""The base of an image audit: what `Src` gave each key at a coordinate, as objects of hashes and digests.

It is made of history and an earlier base, never of the target. One law: it counts only while they are what was written,
under the incarnation and the mapping that the source and the target have now.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pyarrow as pa

from recovery_api.domain.errors import EvidenceGone, Unsuitable
from recovery_api.domain.evidence_places import Stored, Written
from workers.evidence.kernel.image import BASE_ROW
from workers.evidence.store import object_open, part_write

BASE = "base"


def base_write(url: str, number: int, rows: pa.Table) -> list[Written]:
    """One set's share of the base."""
    return part_write(url, BASE, number, rows)


def base_digest(stored: Stored) -> str:
    """One digest of all of it: names, sizes and contents, as they were written."""
    digest = hashlib.sha256()
    for one in stored.of(BASE):
        digest.update(f"{one.name} {one.size} {one.digest}\n".encode())
    return digest.hexdigest()


def base_check(stored: Stored | None, written: str) -> tuple[Written, ...]:
    """The base's objects. Raises: Unsuitable where they are not kept any more, or are not what was written."""
    if stored is None or base_digest(stored) != written:
        raise _unusable("its evidence is not kept any more" if stored is None else "it is another one than was written")
    try:
        for one in stored.of(BASE):
            object_open(stored.url, one).close()
    except EvidenceGone as error:
        why = f"{error.data['part']} is not what was written there: {error.data['reason']}"
        raise _unusable(why) from error
    return stored.of(BASE)


def _unusable(why: str) -> Unsuitable:
    return Unsuitable("the base", why, "Keep another one while the history is whole.")


def base_rows(url: str, written: Written) -> Iterator[pa.RecordBatch]:
    """BASE_ROW of one object."""
    with object_open(url, written) as opened:
        for batch in opened.iter_batches(columns=BASE_ROW.names):
            yield batch.cast(BASE_ROW)
