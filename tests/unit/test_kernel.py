"""The kernel by example: what a property does not say aloud."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import BadInput
from workers.evidence.kernel import LaneQuestion, fold, image_mismatches, judge_block

LOW, HIGH = -(2**63), 2**63 - 1


def side(positions, contents=None, **columns):
    table = {"position": pa.array(positions, pa.int64())}
    if contents is not None:
        table["payload_digest"] = pa.array([bytes([content]) * 32 for content in contents], pa.binary(32))
    return pa.table({**table, **columns})


def judged(history, accepted, frontier=HIGH, **question):
    block = judge_block(LaneQuestion("0", Coordinate(frontier), **question), history, accepted)
    return fold([block.counts]), block.findings


def found(findings, name):
    return [row["position"] for row in findings.to_pylist() if row["finding"] == name]


def test_coordinates_at_both_ends_of_64_bits_are_judged():
    for contents in (None, [1, 1, 1]):
        history = side([LOW, 0, HIGH], contents)
        accepted = side([HIGH, HIGH, LOW], contents)
        counts, findings = judged(history, accepted)
        assert found(findings, "lost") == [0]
        assert found(findings, "duplicate") == [HIGH]
        assert counts.premature == 0


def test_empty_sides_have_verdicts():
    counts, findings = judged(side([]), side([]))
    assert (counts.history_rows, findings.num_rows, counts.coordinates_ascending) == (0, 0, True)
    counts, findings = judged(side([], []), side([7], [1]))
    assert counts.premature_never_committed == 1
    counts, findings = judged(side([7], [1]), side([], []))
    assert found(findings, "lost") == [7]


def test_an_entry_that_a_history_not_read_whole_lacks_is_unknown_wherever_it_lies():
    """RC-06: what is lost of the part that was read stays lost, and an altered entry altered."""
    history, accepted = side([51, 52, 53], [1, 1, 1]), side([7, 51, 53, 54], [1, 9, 1, 1])
    counts, findings = judged(history, accepted, has_journal=False, is_history_whole=False)
    assert found(findings, "unknown") == [7, 54]
    assert (counts.justification_unknown, counts.premature, counts.premature_altered) == (2, 1, 1)
    assert found(findings, "lost") == [51, 52]


def test_an_earlier_audit_certifies_only_the_entries_that_it_saw():
    """Whatever lies below the floor, or is gone from the middle: what came since is unknown below it, and premature above."""
    admitted = {"admitted_in": pa.array([701, 709, 703, 702], pa.int64())}
    history, accepted = side([20], [1]), side([5, 6, 25, 20], [1, 1, 1, 1], **admitted)
    asked = {"floor": Coordinate(20), "has_journal": False}
    counts, findings = judged(history, accepted, admitted_below=705, **asked)
    assert (found(findings, "unknown"), found(findings, "premature")) == ([6], [])
    assert (counts.justification_unknown, counts.justified_earlier) == (1, 2)
    counts, findings = judged(history, accepted, admitted_below=703, **asked)
    assert (found(findings, "unknown"), found(findings, "premature")) == ([6], [25])
    _, findings = judged(history, accepted, **asked)
    assert (found(findings, "unknown"), found(findings, "premature")) == ([5, 6], [25])
    _, findings = judged(history, side([5, 6, 25, 20], [1, 1, 1, 1]), admitted_below=705, **asked)
    assert found(findings, "unknown") == [5, 6]


def test_an_entry_that_an_earlier_audit_doubted_is_doubted_still():
    admitted = {"admitted_in": pa.array([1, 2, 3], pa.int64())}
    accepted = side([5, 6, 7], [1, 1, 1], **admitted)
    doubted = side([5, 6], [1, 2])
    _, findings = judged(side([20], [1]), accepted, admitted_below=9, doubted=doubted)
    assert found(findings, "premature") == [5]


def test_where_rows_go_once_delivered_an_entry_that_nobody_saw_committed_is_unknown_and_not_premature():
    """T3: four were delivered and deleted before an audit saw them; what is kept is judged as ever."""
    history, accepted = side([3, 9], [1, 1]), side([4, 5, 6, 9], [1, 1, 1, 2])
    _counts, findings = judged(history, accepted, has_journal=False, rows_go=True)
    assert (found(findings, "unknown"), found(findings, "lost"), found(findings, "premature")) == (
        [4, 5, 6],
        [3, 9],
        [9],
    )
    assert {row["cause"] for row in findings.to_pylist() if row["finding"] == "unknown"} == {
        "row gone, commit not seen"
    }


def test_an_altered_entry_leaves_its_obligation_lost_and_hidden_from_keyed_matching():
    counts, findings = judged(side([1, 2], [1, 1]), side([1, 2], [1, 9]))
    lost, premature = findings.to_pylist()
    assert (counts.lost_hidden, counts.premature_altered) == (1, 1)
    assert (lost["is_keyed_hidden"], lost["history_digest"], lost["accepted_digest"]) == (
        True,
        b"\x01" * 32,
        b"\x09" * 32,
    )
    assert (premature["cause"], premature["history_digest"], premature["accepted_digest"]) == (
        "altered",
        b"\x01" * 32,
        b"\x09" * 32,
    )


def test_digests_held_as_plain_binary_are_compared_as_those_of_fixed_width():
    fixed = side([1, 2, 3], [1, 2, 3])
    plain = fixed.set_column(1, "payload_digest", fixed["payload_digest"].cast(pa.binary()))
    assert judged(plain, fixed.slice(1))[1].equals(judged(fixed, fixed.slice(1))[1])


def test_null_coordinates_and_null_digests_are_refused():
    history = side([1], [1])
    with pytest.raises(BadInput, match="coordinate"):
        judged(pa.table({"position": pa.array([None], pa.int64())}), side([1]))
    nulls = history.set_column(1, "payload_digest", pa.nulls(1, pa.binary(32)))
    with pytest.raises(BadInput, match="payload_digest"):
        judged(nulls, history)
    with pytest.raises(BadInput, match="key"):
        judged(history, history, scope=pa.array(["a"]))


def test_a_narrowed_reading_meets_with_memory_of_the_order_of_its_input():
    rows = 200_000
    kept = np.arange(rows)[np.arange(rows) % 1000 != 0]
    counts, findings = judged(side(np.arange(rows)), side(np.concatenate([kept, kept[:10], [rows + 5]])))
    assert (counts.lost, counts.duplicate_copies, counts.premature) == (200, 10, 1)
    assert counts.rows_by_coordinate == rows + len(kept) + 11
    assert findings.num_rows == 211


def image(rows):
    position, op, key, content = zip(*rows, strict=True) if rows else ((), (), (), ())
    text = (pa.array(column, pa.string()) for column in (op, key, content))
    return pa.table(
        dict(zip(("position", "op", "key", "content_digest"), (pa.array(position, pa.int64()), *text), strict=True))
    )


def test_image_is_the_latest_event_and_the_base_only_where_there_is_none():
    base = pa.table({"key": ["a", "b", "c"], "content_digest": ["0", "0", "0"]})
    history = image(
        [(1, "insert", "a", "1"), (2, "delete", "b", "x"), (3, "insert", None, "1"), (9, "update", "a", "9")]
    )
    assert image_mismatches(history, history, base, Coordinate(5)).to_pylist() == []
    assert image_mismatches(history, image([]), base, Coordinate(5)).to_pylist() == ["a", "b", None]
    assert image_mismatches(history, image([]), base, Coordinate(5), pa.array(["b", "c"])).to_pylist() == ["b"]
    same = image([(1, "update", "a", "1"), (2, "delete", "b", "y"), (3, "insert", None, "1")])
    assert image_mismatches(history, same, base, Coordinate(5)).to_pylist() == []
