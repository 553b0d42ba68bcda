"""Contents of the archive on the way to a sink: what was judged, in order, or nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recovery_api.domain.archives import Part, Unusable, part_unusable
from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import Unsuitable
from workers.connectors.rows import entry_make
from workers.evidence.archive.contents import _merged, archived_read
from workers.evidence.archive.looking import Archive
from workers.evidence.archive.parts import ARCHIVED, PartWriter, files_missing
from workers.evidence.schemas import BATCH


def events(*positions: int, content: str = '{"n": 1}') -> pa.Table:
    rows = [
        {"lane": "0", "position": one, "ordinal": 0, "op": "insert", "key": f"k{one}", "content": content}
        for one in positions
    ]
    return pa.Table.from_pylist([entry_make(row) for row in rows], schema=ARCHIVED)


def part_of(folder: Path, rows: pa.Table) -> Part:
    writer = PartWriter(str(folder / "archive" / "1"))
    for row in range(rows.num_rows):
        writer.write(rows.slice(row, 1))
    file, size, digest = writer.close()
    return Part("0", None, Coordinate(100), rows.num_rows, size, "", file, digest, "here", "mapped")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def asked(rows: pa.Table) -> pa.Table:
    return rows.select(["lane", "position", "ordinal", "payload_digest"])


def test_contents_come_by_coordinate_each_once_though_parts_overlap(folder: Path) -> None:
    first, second = part_of(folder, events(9, 3, 5)), part_of(folder, events(5, 7))
    wanted = events(7, 3, 5)
    read = pa.Table.from_batches(archived_read(Archive((first, second), "mapped"), asked(wanted)))
    assert read.schema == BATCH and read["position"].to_pylist() == [3, 5, 7]


def test_a_content_that_is_not_what_was_judged_is_never_handed_on(folder: Path) -> None:
    judged = events(3, 5)
    part = part_of(folder, judged)
    table = pq.read_table(part.file)
    at = table.schema.get_field_index("content")
    pq.write_table(table.set_column(at, ARCHIVED.field("content"), pa.array(['{"n": 2}'] * 2)), part.file)
    size, digest = Path(part.file).stat().st_size, hashlib.sha256(Path(part.file).read_bytes()).hexdigest()
    forged = replace(part, bytes=size, file_digest=digest)
    with pytest.raises(Unsuitable, match="is not there as it was judged"):
        list(archived_read(Archive((forged,), "mapped"), asked(judged)))


@pytest.mark.parametrize("why", [Unusable.ELSEWHERE, Unusable.EXPIRED])
def test_a_part_that_may_not_serve_hands_nothing_on(folder: Path, why: Unusable) -> None:
    part = part_of(folder, events(3))
    with pytest.raises(Unsuitable, match=why.means[:20]):
        list(archived_read(Archive((part,), "mapped", {part.file: why}), asked(events(3))))


def test_a_part_of_a_bucket_that_is_not_set_serves_nothing(folder: Path) -> None:
    part = replace(part_of(folder, events(3)), is_elsewhere=True)
    assert part_unusable(part, "here", "mapped", None) is Unusable.AWAY
    assert files_missing([part]) == 1


def test_what_no_part_holds_is_named_by_its_coordinate(folder: Path) -> None:
    with pytest.raises(Unsuitable, match="4:0"):
        list(archived_read(Archive((part_of(folder, events(3)),), "mapped"), asked(events(3, 4))))


def batches(*sizes: tuple[int, ...]) -> Iterator[pa.RecordBatch]:
    for positions in sizes:
        yield from events(*positions).select(BATCH.names).to_batches() or [pa.RecordBatch.from_pylist([], BATCH)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([(1, 2), (5,)], [(3,), (4, 9)]),
        ([], [(1,), (), (2,)]),
        ([(1, 8)], [(2, 3, 4), (5,), (9,)]),
        ([(4,)], []),
    ],
)
def test_two_streams_are_handed_on_in_one_order(one: list[tuple[int, ...]], other: list[tuple[int, ...]]) -> None:
    merged = [row["position"] for batch in _merged(batches(*one), batches(*other)) for row in batch.to_pylist()]
    assert merged == sorted(position for part in (*one, *other) for position in part)
