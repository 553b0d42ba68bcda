"""A file of the archive as objects: one, or several where a bucket takes no object as large as it is.

The law: how many objects it is follows from its size, which its row tells, and that row is written once all of them are put. The
first has the file's name, and the later ones are named after it.
"""

from __future__ import annotations

import contextlib
import re

from recovery_api.domain.errors import EvidenceGone
from recovery_api.domain.evidence_places import place_parse
from workers.evidence.places import PUT_MOST, object_get, object_put, object_remove, object_renew


def file_put(url: str, name: str, body: bytes) -> None:
    """Raises: EvidenceUnwritable; AccessDenied."""
    view = memoryview(body)
    for number, one in enumerate(_names(url, name, len(body))):
        object_put(url, one, view[number * PUT_MOST :][:PUT_MOST])


def file_get(url: str, name: str, size: int) -> bytes:
    """Its bytes, as far as `size` names them. Raises: EvidenceGone; EvidenceUnwritable; AccessDenied."""
    body = object_get(url, name)
    if len(body) >= size:  # one of before, which a store put together, too
        return body
    return b"".join([body, *(object_get(url, one) for one in _names(url, name, size)[1:])])


def file_remove(url: str, name: str, size: int) -> None:
    """Takes it away, if it is there. Raises: EvidenceUnwritable; AccessDenied."""
    for one in _names(url, name, size):
        object_remove(url, one)


def file_renew(url: str, name: str, size: int) -> None:
    """Has it be as old as if it were put now. Raises: EvidenceGone; EvidenceUnwritable; AccessDenied."""
    for one in _names(url, name, size)[1:]:
        with contextlib.suppress(EvidenceGone):  # one of before is one object, whatever its size
            object_renew(url, one)
    object_renew(url, name)


def file_of(name: str) -> str:
    """The file that an object belongs to.

    >>> file_of("a.parquet"), file_of("a.parquet.12")
    ('a.parquet', 'a.parquet')
    """
    return re.sub(r"\.parquet\.[0-9]+$", ".parquet", name)


def _names(url: str, name: str, size: int) -> list[str]:
    count = 1 if place_parse(url).is_folder else max(1, -(-size // PUT_MOST))
    return [name, *(f"{name}.{number}" for number in range(1, count))]
