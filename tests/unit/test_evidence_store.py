"""Evidence in a folder and in a bucket: whole or not there, read by what was written, and never by what lies there."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from recovery_api.domain.archives import Part
from recovery_api.domain.coordinates import INT64_MAX, INT64_MIN, Coordinate
from recovery_api.domain.errors import AccessDenied, BadInput, EvidenceGone, EvidenceUnwritable, Unsuitable
from recovery_api.domain.evidence_places import (
    Stored,
    Written,
    place_parse,
    stored_make,
    uri_of,
    url_below,
    url_of,
    url_split,
    written_from_row,
)
from tests.buckets import BUCKET, ENVIRONMENT, KEYS, Bucket, bucket_served, refusing
from workers.connectors.readings import CoordinateRange
from workers.connectors.rows import entry_make
from workers.evidence import places, schemas
from workers.evidence.archive.files import file_of, file_remove, file_renew
from workers.evidence.archive.parts import ARCHIVED, PartUnusable, PartWriter, files_missing, part_check, part_read
from workers.evidence.places import (
    PUT_MOST,
    object_get,
    object_put,
    object_remove,
    objects_list,
    objects_sizes,
    place_remove,
    store_probe,
)
from workers.evidence.store import (
    FINDINGS,
    PUT_BYTES,
    Encoder,
    objects_in,
    part_write,
    parts_read,
    range_filter,
    rows_head,
    rows_read,
)

ROWS = 200_000


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    with bucket_served() as served:
        yield served


@dataclass
class Store:
    """A store at hand. `bytes_of`, `write`, `forget`: of one object, past the product."""

    url: str
    bytes_of: Callable[[Written], bytes]
    write: Callable[[str, bytes], None]
    forget: Callable[[Written], None]


@pytest.fixture(params=["folder", "bucket"])
def store(request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    if request.param == "folder":
        place = tmp_path / "audits" / "1"
        return Store(
            str(place),
            lambda one: (place / one.name).read_bytes(),
            lambda name, body: (place / name).write_bytes(body) and None,
            lambda one: (place / one.name).unlink(),
        )
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    served: Bucket = request.getfixturevalue("bucket")
    below = f"audits/{os.urandom(4).hex()}"
    return Store(
        url_below(served.url, *below.split("/")),
        lambda one: served.get(f"run/{below}/{one.name}"),
        lambda name, body: served.put(f"run/{below}/{name}", body),
        lambda one: served.delete(f"run/{below}/{one.name}"),
    )


def lost(count: int, first: int = 1, lane: str = "0") -> pa.Table:
    """Findings whose digests no encoding makes smaller."""
    chance = np.random.default_rng(first)
    digests = pa.FixedSizeBinaryArray.from_buffers(
        schemas.DIGEST, count, [None, pa.py_buffer(chance.bytes(32 * count))]
    )
    columns = {
        "finding": pa.repeat(pa.scalar("lost"), count),
        "lane": pa.repeat(pa.scalar(lane), count),
        "position": pa.array(np.arange(first, first + count)),
        "ordinal": pa.array(np.zeros(count, np.int64)),
        "history_digest": digests,
        "accepted_digest": digests,
    }
    return pa.table(schemas.shaped(columns, schemas.FINDING, count), schema=schemas.FINDING)


def test_what_was_written_is_read_back_and_no_object_is_larger_than_one_put(store: Store) -> None:
    whole = lost(ROWS)
    written = part_write(store.url, FINDINGS, 3, whole)
    assert len(written) > 1 and max(one.size for one in written) <= PUT_BYTES
    assert [len(store.bytes_of(one)) for one in written] == [one.size for one in written]
    stored = stored_make(store.url, [one.as_row() for one in written])
    assert stored.objects == tuple(written), "a manifest holds what was told"
    assert rows_read(stored, stored.of(FINDINGS), schemas.FINDING).equals(whole.combine_chunks())
    assert [number for number, _ in parts_read(stored, FINDINGS, schemas.FINDING, columns=["lane"])] == [3]
    within = CoordinateRange("0", Coordinate(ROWS - 9), None)
    few = objects_in(stored.of(FINDINGS), within)
    assert len(few) == 1, "the others are known to hold nothing of it"
    found = rows_read(stored, few, schemas.FINDING, columns=["position"], wanted=range_filter(within))
    assert found["position"].to_pylist() == list(range(ROWS - 9, ROWS + 1))
    assert objects_in(stored.of(FINDINGS), CoordinateRange("1", None, None)) == []
    head = rows_head(stored, FINDINGS, schemas.FINDING, 4, ["position"], range_filter(within))
    assert head.num_rows == 4


def test_a_part_half_written_altered_or_gone_is_never_read(store: Store) -> None:
    (written,) = part_write(store.url, FINDINGS, 0, lost(50))
    stored, body = Stored(store.url, (written,)), store.bytes_of(written)

    def told() -> str:
        with pytest.raises(EvidenceGone) as refused:
            rows_read(stored, stored.objects, schemas.FINDING)
        return str(refused.value)

    store.write(written.name, body[: len(body) // 2])
    assert f"it has {len(body) // 2:,} bytes, and {len(body):,} were written" in told()
    store.write(written.name, body[:40] + bytes([body[40] ^ 1]) + body[41:])
    assert "its bytes were altered" in told()
    (other,) = part_write(store.url, FINDINGS, 0, lost(50, first=51))
    store.write(written.name, store.bytes_of(other))
    assert "is not what was written there" in told(), "a whole part of another attempt is not this one"
    store.forget(written)
    assert "it is not there" in told() and "a-secret" not in told() and "env:" not in told()


def test_no_object_is_sent_in_pieces_that_the_store_puts_together(store: Store, bucket: Bucket) -> None:
    most = os.urandom(PUT_MOST)
    object_put(store.url, "whole", most)
    assert object_get(store.url, "whole") == most
    if place_parse(store.url).is_folder:
        return
    with pytest.raises(Unsuitable, match="9,437,185 bytes.*9,437,184"):
        object_put(store.url, "more", most + b"x")
    assert [name for name, _ in objects_list(store.url)] == ["whole"]
    assert not bucket.client.list_multipart_uploads(Bucket=BUCKET).get("Uploads")


def test_a_content_larger_than_one_object_is_archived_whole_and_goes_whole(store: Store, tmp_path: Path) -> None:
    """24 MiB are real. What no compression makes smaller is put as several objects."""
    large = os.urandom(PUT_MOST + 2**20).hex()  # as text: half as many bytes again are left of it compressed
    rows = entry_make({"lane": "0", "position": 7, "ordinal": 0, "op": "insert", "key": "k", "content": f'"{large}"'})
    writer = PartWriter(store.url)
    writer.write(pa.Table.from_pylist([rows], schema=ARCHIVED))
    file, size, digest = writer.close()
    part = Part("0", None, Coordinate(100), 1, size, "", file, digest, "here", "mapped")
    place, name = url_split(file)
    assert size > PUT_MOST and size == sum(objects_sizes(place).values()), "nothing is there twice"
    is_folder = place_parse(store.url).is_folder
    assert set(objects_sizes(place)) == ({name} if is_folder else {name, f"{name}.1"})
    part_check(part)
    (read,) = part_read(part, ["content"])
    assert read["content"][0].as_py() == f'"{large}"'
    assert files_missing([part]) == 0 and {file_of(one) for one in objects_sizes(place)} == {name}
    if not is_folder:
        second = object_get(place, f"{name}.1")
        object_remove(place, f"{name}.1")
        assert files_missing([part]) == 1
        with pytest.raises(PartUnusable):
            part_check(part)
        object_put(place, f"{name}.1", second)
    file_renew(place, name, size), file_remove(place, name, size)
    assert objects_list(place) == []


def test_a_repeated_attempt_takes_nothing_from_the_first(store: Store) -> None:
    first, second = (part_write(store.url, FINDINGS, 0, lost(9)) for _ in range(2))
    assert first[0].name != second[0].name and first[0].digest == second[0].digest
    for one in (first, second):
        assert rows_read(Stored(store.url), one, schemas.FINDING).num_rows == 9


def test_nothing_is_put_where_nothing_was_found(store: Store) -> None:
    with_none = Encoder(store.url, FINDINGS, 0, schemas.FINDING)
    with_none.add(schemas.FINDING.empty_table())
    assert with_none.finish() == [] and objects_list(store.url) == []
    let_go = Encoder(store.url, FINDINGS, 0, schemas.FINDING)
    let_go.add(lost(5))
    let_go.close()
    assert objects_list(store.url) == [], "what was not finished is nowhere"


def test_a_place_is_listed_and_taken_away_whole(store: Store) -> None:
    one, two = (part_write(store.url, FINDINGS, number, lost(5))[0] for number in (0, 1))
    listed = dict(objects_list(store.url))
    assert set(listed) == {one.name, two.name}
    assert all(abs(time.time() - at) < 3600 for at in listed.values())
    object_remove(store.url, one.name), object_remove(store.url, one.name)
    assert [name for name, _ in objects_list(store.url)] == [two.name]
    place_remove(store.url), place_remove(store.url)
    assert objects_list(store.url) == []


def test_a_probe_leaves_nothing(store: Store) -> None:
    store_probe(store.url)
    assert objects_list(store.url) == []


@pytest.mark.parametrize(
    ("status", "code", "kind", "says"),
    [
        (503, "SlowDown", EvidenceUnwritable, "the store asks to be asked less often (SLOW_DOWN)"),
        (503, "ServiceUnavailable", EvidenceUnwritable, "the store is not available (SERVICE_UNAVAILABLE)"),
        (403, "AccessDenied", AccessDenied, "the store refuses this credential"),
        (404, "NoSuchBucket", EvidenceUnwritable, "there is no such bucket"),
    ],
)
def test_a_bucket_that_refuses_is_said_in_its_own_words(
    status: int, code: str, kind: type[Exception], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "ATTEMPTS", 1)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with refusing(status, code) as url, pytest.raises(kind) as refused:
        part_write(url, FINDINGS, 0, lost(5))
    told = str(refused.value)
    assert says in told and told.startswith("s3://evidence/run")
    assert "secret" not in told and "env:" not in told and "127.0.0.1" not in told


def test_a_bucket_that_answers_503_to_readers_is_no_part_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gone is for good, and somebody must act; a store that is away is asked again."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    written = Written(FINDINGS, 0, "part-00000-0a.parquet", 5, "d", 1)
    with refusing(503, "ServiceUnavailable") as url, pytest.raises(EvidenceUnwritable):
        rows_read(Stored(url), [written], schemas.FINDING)


def test_a_key_that_is_not_there_is_named_and_not_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FENCEPOST_END_S3_KEY", raising=False)
    with pytest.raises(AccessDenied, match="env:FENCEPOST_END_S3_KEY"):
        part_write(f"s3://nowhere/else?{KEYS}", FINDINGS, 0, lost(1))


def test_a_full_or_read_only_folder_may_pass_and_leaves_no_half(tmp_path: Path) -> None:
    with pytest.raises(EvidenceUnwritable, match="/sys/fencepost"):
        part_write("/sys/fencepost", FINDINGS, 0, lost(1))
    folder = tmp_path / "a file"
    folder.write_text("no folder")
    with pytest.raises(EvidenceUnwritable):
        part_write(str(folder), FINDINGS, 0, lost(1))
    shutil.rmtree(tmp_path / "none", ignore_errors=True)
    assert objects_list(str(tmp_path / "none")) == []


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("ftp://host/x", "ftp: is no store"),
        ("s3://key:secret@bucket/x", "holds a key"),
        ("s3:///x", "names no bucket"),
        ("s3://bucket/x?secret_key=abc&access_key=env:FENCEPOST_END_A", "secret_key is no reference"),
        ("s3://bucket/x?access_key=env:FENCEPOST_END_A", "names one of access_key and secret_key"),
        ("s3://bucket/x?acl=public", "acl is no option"),
        ("file://host/x", "names no folder"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_without_its_secret(url: str, says: str) -> None:
    with pytest.raises(BadInput) as refused:
        place_parse(url)
    assert says in str(refused.value) and "abc" not in str(refused.value) and "key:secret" not in str(refused.value)


def test_places_are_named_without_how_they_are_reached() -> None:
    store = "s3://bucket/fencepost/?region=eu-west-1&scheme=http"
    place = url_below(store, "audits", "7")
    assert uri_of(place) == "s3://bucket/fencepost/audits/7" and url_of(uri_of(place), store) == place
    assert url_of("s3://other/audits/7", store) == "s3://other/audits/7"
    assert url_below("/srv/a?b", "audits") == "/srv/a?b/audits" == uri_of("/srv/a?b/audits")
    assert place_parse("/srv/a?b").path == "/srv/a?b" and place_parse("file:///srv/a%20b").path == "/srv/a b"


def test_a_manifest_row_keeps_coordinates_of_any_size() -> None:
    one = Written(
        "part", 2**31, "n", 5, "d", 1, "é", Coordinate(INT64_MIN, INT64_MIN), Coordinate(INT64_MAX, INT64_MAX)
    )
    assert written_from_row(one.as_row()) == one
    assert written_from_row(replace(one, lane=None, low=None, high=None).as_row()).low is None
