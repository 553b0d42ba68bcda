"""The kernel of ids against the definitions in plain Python, and ids against the types they are of."""

from __future__ import annotations

import uuid
from collections import Counter
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import Unsuitable
from recovery_api.domain.identity import IdType
from workers.evidence import schemas
from workers.evidence.kernel import LaneQuestion, fold
from workers.evidence.kernel import ids as kernel

ONE = "6f1c0b7e-1d2a-4c55-9a3e-0d9f5b7e2a10"
NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
SPELLINGS = (
    str,
    lambda one: str(one).upper(),
    lambda one: f"{{{one}}}",
    lambda one: one.hex,
    lambda one: f"({one})",
    lambda one: one.urn,
)


def canonical(texts, id_type):
    return kernel.ids_canonical(pa.array(texts, pa.string()), id_type).to_pylist()


@given(st.lists(st.tuples(st.uuids(), st.sampled_from(SPELLINGS)), max_size=8))
def test_a_uuid_is_one_id_in_every_spelling(ids):
    """RC-31: an upper-case UUID is its lower-case twin."""
    assert canonical([spell(one) for one, spell in ids], IdType.UUID) == [one.hex for one, _ in ids]


@pytest.mark.parametrize(
    "text", ["", "7", ONE[:-1], ONE + "0", f"{{{ONE}", f"{ONE}}}", f" {ONE}", ONE.replace("6", "g")]
)
def test_what_is_no_uuid_is_told_apart(text):
    assert canonical([text, ONE], IdType.UUID) == [None, uuid.UUID(ONE).hex]


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.sampled_from(["", " "]), st.booleans()), max_size=8))
def test_a_number_is_one_id_with_sign_and_leading_zeros(numbers):
    spelled = [f"{blank}{'-' if one < 0 else '+' if plus else ''}00{abs(one)}" for one, blank, plus in numbers]
    assert canonical(spelled, IdType.BIGINT) == [str(one) for one, _, _ in numbers]


@pytest.mark.parametrize("text", ["", "-", "1.0", "1e3", "0x10", "9223372036854775808", "-9223372036854775809", "a"])
def test_what_is_no_number_of_64_bits_is_told_apart(text):
    assert canonical([text, "9223372036854775807", "-9223372036854775808"], IdType.BIGINT) == [
        None,
        "9223372036854775807",
        "-9223372036854775808",
    ]


def test_a_text_is_compared_exactly():
    """RC-31: the sink's collation may take these for one id; they are five events."""
    texts = ["evt-🌵", "evt-🚲", "evt-a", "EVT-A", "evt-a "]
    assert canonical(texts, IdType.TEXT) == texts


EVENTS = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["a", "b", None]),
        "age": st.none() | st.sampled_from([-9, 0, 1, 4, 5, 6, 20]),  # minutes before the record was read
    }
)
LANES = st.fixed_dictionaries(
    {
        "events": st.dictionaries(st.integers(0, 9), EVENTS, max_size=7),
        "nameless": st.sets(st.integers(0, 9), max_size=1),
        "record": st.lists(st.tuples(st.integers(0, 12), st.sampled_from(SPELLINGS), st.booleans()), max_size=12),
        "strange": st.booleans(),
        "frontier": st.integers(0, 9),
        "scope": st.none() | st.lists(st.sampled_from(["a", "b"]), max_size=2),
        "acknowledged": st.sets(st.integers(0, 9), max_size=2),
        "lifetime": st.none() | st.just(5),
        "certified": st.none() | st.integers(0, 9),
        "buckets": st.integers(1, 3),
    }
)


def id_of(number):
    return uuid.UUID(int=number + 1)


@settings(max_examples=300)
@given(LANES)
def test_the_kernel_of_ids_is_the_definitions_whatever_the_sets(lane):
    counts, findings, stranded = judged(lane)
    assert (counts, findings, stranded) == oracle(lane)


def judged(lane):
    """By the kernel: one range of coordinates, as many sets of ids as are asked for."""
    question = LaneQuestion(
        lane="0",
        frontier=Coordinate(lane["frontier"], 0),
        scope=None if lane["scope"] is None else pa.array(lane["scope"], pa.string()),
        acknowledged=pa.table(
            {
                "position": pa.array(sorted(lane["acknowledged"]), pa.int64()),
                "ordinal": pa.array([0] * len(lane["acknowledged"]), pa.int64()),
            }
        ),
    )
    history = pa.Table.from_pylist(
        [
            {
                "lane": "0",
                "position": at,
                "ordinal": 0,
                "event_id": None if at in lane["nameless"] else str(id_of(at)),
                "key": one["key"],
                "payload_digest": bytes([at]) * 32,
                "committed_at": None if one["age"] is None else NOW - timedelta(minutes=one["age"]),
            }
            for at, one in sorted(lane["events"].items())
        ],
        schema=schemas.HISTORY,
    )
    entries = [{"event_id": spell(id_of(number)), "is_accepted": is_in} for number, spell, is_in in lane["record"]]
    entries += [{"event_id": "no id of ours", "is_accepted": True}] if lane["strange"] else []
    record = pa.Table.from_pylist(entries, schema=pa.schema([("event_id", pa.string()), ("is_accepted", pa.bool_())]))
    rows, prepared, _ = kernel.history_prepare(question, history, IdType.UUID, 3)
    met, unreadable, _ = kernel.record_prepare(record, IdType.UUID)
    asked = kernel.IdQuestion(
        lane="0",
        lost_since_us=None if lane["lifetime"] is None else micros(NOW - timedelta(minutes=lane["lifetime"])),
        believed_to_us=micros(NOW + timedelta(minutes=1)),
        certified_below=None if lane["certified"] is None else Coordinate(lane["certified"], 0),
        has_unreadable=unreadable > 0,
    )
    verdicts = [
        kernel.judge_ids(asked, bucket(rows, lane["buckets"], number), bucket(met, lane["buckets"], number))
        for number in range(lane["buckets"])
    ]
    total = fold([prepared, *(one.counts for one in verdicts), {"ids_unreadable": unreadable}])
    found = pa.concat_tables([one.findings for one in verdicts]).to_pylist()
    assert {row["part"] for row in found} <= {3}
    said = {(row["finding"], row["cause"], row["position"], row["accepted_count"]) for row in found}
    assert len(said) == len(found)
    names = ("lost", "acknowledged", "absent_trimmed", "absent_untimed", "absent_unreadable", "absent_acknowledged")
    names += ("ids_missing", "ids_unreadable", "ids_unmatched", "duplicate_payloads", "duplicate_copies")
    names += ("obligations_retained", "accepted_rows")
    return {name: getattr(total, name) for name in names}, said, sum(one.counts["stranded"] for one in verdicts)


def oracle(lane):
    """The same by the definitions, row by row."""
    accepted = Counter(number for number, _, is_in in lane["record"] if is_in)
    received = {number for number, _, _ in lane["record"]}
    counts, findings, stranded = Counter(), set(), 0
    named = {at for at in lane["events"] if at not in lane["nameless"]}
    for at, one in lane["events"].items():
        is_owed = lane["scope"] is None or one["key"] in lane["scope"]
        if at in named and accepted[at] > 1:
            findings.add(("duplicate", None, at, accepted[at]))
        if not is_owed:
            continue
        if at > lane["frontier"]:
            stranded += at in named and not accepted[at]
            continue
        counts["obligations_retained"] += 1
        if at not in named:
            counts["ids_missing"] += 1
        elif not accepted[at]:
            cause = absence(lane, at, one["age"], at in received)
            is_known = cause is None or cause == kernel.RECEIVED
            if not is_known and lane["certified"] is not None and at <= lane["certified"]:
                continue
            findings.add(("lost" if is_known else "unknown", cause, at, None))
            counts["lost" if is_known else kernel.CAUSE_COUNTS[cause]] += 1
            counts["acknowledged" if is_known else "absent_acknowledged"] += at in lane["acknowledged"]
    for number, times in accepted.items():
        counts["accepted_rows"] += times
        counts["duplicate_payloads"] += times > 1
        counts["duplicate_copies"] += times - 1
        counts["ids_unmatched"] += times if number not in named else 0
    counts["ids_unreadable"] = int(lane["strange"])
    names = judged({**lane, "events": {}, "record": [], "strange": False})[0]
    return {name: counts[name] for name in names}, findings, stranded


def absence(lane, at, age, is_received):
    if is_received:
        return kernel.RECEIVED
    if lane["strange"]:
        return kernel.UNREADABLE
    if lane["lifetime"] is None:
        return None
    if age is None or age < -1:
        return kernel.UNTIMED
    return kernel.TRIMMED if age > lane["lifetime"] else None


def bucket(table, buckets, number):
    return table.filter(
        pa.array([int(one[-2:], 16) % buckets == number for one in table["id"].to_pylist()], pa.bool_())
    )


def micros(at):
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def test_an_id_of_two_events_is_refused_with_their_places():
    """An id can stand for an event only where no two share one."""
    history = pa.Table.from_pylist(
        [{"lane": "0", "position": at, "ordinal": 0, "event_id": text} for at, text in ((4, ONE), (7, ONE.upper()))],
        schema=schemas.HISTORY,
    )
    rows, _, _ = kernel.history_prepare(LaneQuestion("0", Coordinate(9, 0)), history, IdType.UUID, 0)
    with pytest.raises(Unsuitable, match="positions 4 and 7"):
        kernel.judge_ids(kernel.IdQuestion("0", None, 0), rows, kernel.RECORD_IDS.empty_table())
