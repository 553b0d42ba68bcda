"""The rule for one key, every case of it, and the kernel that judges sets of them by it."""

from __future__ import annotations

import ast
import hashlib
import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.images import Committed, ImageCounts, ImageWord, Shown, history_gap, image_conclude, key_judge
from workers.evidence.image_spec import MET
from workers.evidence.kernel.image import (
    BASE,
    EVENT,
    LATER,
    MEETING,
    ROW,
    ImageQuestion,
    image_judge,
    image_mismatches,
    latest_keep,
)
from workers.evidence.schemas import IMAGE_ROW
from workers.spark.jobs import image as job

PROJECT = Path(__file__).parents[2]


def hashed(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def rows(*told: tuple[int, str, int, str | None]) -> pa.Table:
    """Side, key, position and content (None: absent) as MEETING."""
    columns = list(zip(*told, strict=True)) or [()] * 4
    sides, keys, positions, contents = columns
    return pa.table(
        [
            pa.array(sides, pa.int8()),
            pa.array([hashed(key) for key in keys], pa.binary(32)),
            pa.array(positions, pa.int64()),
            pa.array([0] * len(keys), pa.int64()),
            pa.array([None if one is None else hashed(one) for one in contents], pa.binary(32)),
        ],
        schema=MEETING,
    )


def told(found: pa.Table) -> dict[bytes, str]:
    return dict(zip(found["key_hash"].to_pylist(), found["word"].to_pylist(), strict=True))


def test_a_key_is_told_a_difference_only_where_everything_it_rests_on_is_known() -> None:
    for committed, shown, later in itertools.product(Committed, Shown, (False, True)):
        word = key_judge(committed, shown, later)
        is_known = not later and committed in (Committed.ABSENT, Committed.PRESENT)
        assert word is None or word.is_unknown != is_known
        if is_known:
            is_there = committed is Committed.PRESENT
            assert (word is None) == (shown is Shown.SAME if is_there else shown is Shown.ABSENT)


def test_the_latest_event_counts_and_the_base_only_where_there_is_none() -> None:
    judged = image_judge(
        ImageQuestion(is_whole=True, has_base=True),
        rows(
            (EVENT, "a", 1, "1"), (EVENT, "a", 5, "2"), (BASE, "a", 0, "9"), (ROW, "a", 0, "2"),
            (BASE, "b", 0, "1"), (ROW, "b", 0, "1"),
            (EVENT, "c", 3, None), (BASE, "c", 0, "1"), (ROW, "c", 0, "1"),
            (EVENT, "d", 4, "1"), (BASE, "e", 0, "1"), (ROW, "f", 0, "1"), (EVENT, "g", 2, None),
            (EVENT, "h", 2, "x"), (ROW, "h", 0, "y"), (ROW, "i", 0, "1"), (LATER, "i", 9, None),
            (EVENT, "j", 2, "x"), (EVENT, "j", 2, "y"), (ROW, "j", 0, "y"),
        ),
    )  # fmt: skip
    words = {"c": "extra", "d": "missing", "e": "missing", "f": "extra", "h": "mismatched"}
    words |= {"i": "later event accepted", "j": "two events at one coordinate"}
    assert told(judged.findings) == {hashed(key): word for key, word in words.items()}
    assert judged.counts.keys == 10 and judged.counts.rows == 7
    assert sum(judged.counts.words.values()) == judged.findings.num_rows
    assert {*judged.base["key_hash"].to_pylist()} == {hashed(key) for key in "abdeh"}


def test_without_a_whole_history_a_key_that_nothing_tells_of_is_unknown_and_never_extra() -> None:
    judged = image_judge(
        ImageQuestion(is_whole=False), rows((ROW, "a", 0, "1"), (EVENT, "b", 1, None), (ROW, "b", 0, "1"))
    )
    assert told(judged.findings) == {hashed("a"): "history not whole", hashed("b"): "extra"}


EVENTS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.sampled_from(["1", "2", None])), max_size=12)


@given(EVENTS, EVENTS)
def test_exports_and_sets_of_hashes_are_judged_alike(history: list[tuple], delivered: list[tuple]) -> None:
    """The image of a delivered history is its target: both ways name the same keys, whatever each task kept."""
    histories = [{(key, at): content for key, at, content in side} for side in (history, delivered)]
    exports = [
        pa.table(
            {
                "position": pa.array([at for _, at in side], pa.int64()),
                "op": pa.array(["delete" if content is None else "insert" for content in side.values()], pa.string()),
                "key": pa.array([key for key, _ in side], pa.string()),
                "content_digest": pa.array([content or "" for content in side.values()], pa.string()),
            }
        )
        for side in histories
    ]
    held = {
        key: max((at, content) for (one, at), content in histories[1].items() if one == key)[1]
        for key, _ in histories[1]
    }
    met = rows(
        *((EVENT, key, at, content) for (key, at), content in histories[0].items()),
        *((ROW, key, 0, content) for key, content in held.items() if content is not None),
    )
    events = met.filter(pa.array([side == EVENT for side in met["side"].to_pylist()], pa.bool_()))
    kept = [latest_keep(batch) for batch in events.select(IMAGE_ROW.names).to_batches(max_chunksize=3)]
    rest = met.filter(pa.array([side == ROW for side in met["side"].to_pylist()], pa.bool_()))
    columns = [pa.table([pa.array([EVENT] * one.num_rows, pa.int8()), *one.columns], schema=MEETING) for one in kept]
    narrowed = pa.concat_tables([*columns, rest])
    expected = {hashed(key) for key in image_mismatches(*exports, None, Coordinate(9)).to_pylist()}
    for table in (met, narrowed):
        assert set(told(image_judge(ImageQuestion(is_whole=True), table).findings)) == expected


def test_a_million_rows_leave_a_set_with_a_few_named_keys() -> None:
    """What goes back to the driver is bounded, whatever differs."""
    count = 200_000
    hashes = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(32), count, [None, pa.py_buffer(np.random.default_rng(7).bytes(32 * count))]
    )
    zeros = pa.array(np.zeros(count, np.int64))
    met = pa.table([pa.array(np.full(count, ROW, np.int8)), hashes, zeros, zeros, hashes], schema=MEETING)
    judged = image_judge(ImageQuestion(is_whole=True), met)
    assert judged.counts == ImageCounts(count, count, {"extra": count})
    assert len(job._sample(judged.findings)) == 20


def test_what_is_shuffled_is_a_hash_a_coordinate_and_a_digest() -> None:
    assert MET.names == ["side", "key_hash", "position", "ordinal", "digest", "error"]


@pytest.mark.parametrize("name", ["workers/evidence/kernel/image.py", "workers/spark/jobs/image.py"])
def test_no_evidence_is_collected_and_nothing_walks_over_rows(name: str) -> None:
    """`to_pylist` stands in the job for indexes of tasks, answers of sets and a bounded sample, each named here."""
    tree = ast.parse((PROJECT / name).read_text(encoding="utf-8"))
    calls = [
        node.func.attr for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ]
    assert not {"collect", "toPandas", "mapInPandas", "udf", "iterrows", "as_pydict"} & set(calls)
    assert calls.count("to_pylist") == (3 if "jobs" in name else 0)


def test_a_difference_that_is_certain_counts_beside_unknown_keys_and_no_key_is_equal_to_nothing() -> None:
    counts = ImageCounts(5, 5, {"extra": 1, "later event accepted": 2})
    assert image_conclude("9", counts, [], []).exit_code == 1
    assert image_conclude("9", ImageCounts(5, 5, {"later event accepted": 2}), [], ["x"]).exit_code == 3
    assert image_conclude("9", ImageCounts(5, 5), [], ["x"]).exit_code == 4
    assert image_conclude("9", ImageCounts(5, 5), [], []).exit_code == 0
    assert image_conclude("9", counts, ["Nothing was read."], []).exit_code == 3
    assert all(word.value in image_conclude("9", ImageCounts(9, 9, {word.value: 1}), [], []).says for word in ImageWord)


def test_a_history_is_whole_only_from_its_first_number_on() -> None:
    at = Coordinate
    assert not history_gap(at(1), None, 1, None) and not history_gap(at(1), at(1), 1, None)
    assert history_gap(at(2), None, 1, None) and history_gap(at(2), at(2), None, None)
    assert not history_gap(at(2), None, None, None) and history_gap(at(2), None, None, at(1))
    assert history_gap(None, at(4), 1, None) and history_gap(None, None, 1, at(1))
    assert not history_gap(at(5), at(5), 1, at(1), at(5)) and history_gap(at(6), at(6), 1, at(1), at(5))
