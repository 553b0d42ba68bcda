"""Contents as change logs and outboxes write them: typed values, placeholders, null, doubly encoded and binary payloads."""

from __future__ import annotations

import base64
import json

import pytest

from tests.unit.files.exports import judged
from workers.evidence.canonical import canonical
from workers.evidence.files.debezium import unknown_members
from workers.evidence.files.options import PLACEHOLDER
from workers.evidence.files.values import BadValue, bytes_of, instant_of, schema_decode, typed

DECIMAL = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}}


@pytest.mark.parametrize(
    ("given", "number"),
    [
        ("AeJA", "1234.56"),
        ("/h3A", "-1234.56"),
        ("/w==", "-0.01"),
        ("AIA=", "1.28"),
        ("gA==", "-1.28"),
        ("AA==", "0.00"),
    ],
)
def test_rc_27_decimals_are_signed_and_exact(given, number):
    assert str(schema_decode(given, DECIMAL, json.loads)) == number
    assert str(typed(given, "decimal:2", json.loads)) == number


def test_rc_27_scales_times_and_bytes_are_read_by_their_own_unit():
    variable = {"type": "struct", "name": "io.debezium.data.VariableScaleDecimal"}
    assert str(schema_decode({"scale": 0, "value": "AQ=="}, variable, json.loads)) == "1"
    assert str(schema_decode({"scale": -3, "value": "AQ=="}, variable, json.loads)) == "1000"
    for name, count in (("MicroTimestamp", 1772964930123456), ("NanoTimestamp", 1772964930123456000)):
        schema = {"type": "int64", "name": f"io.debezium.time.{name}"}
        assert schema_decode(count, schema, json.loads) == "2026-03-08T10:15:30.123456Z"
    schema = {"type": "int64", "name": "io.debezium.time.Timestamp"}
    assert schema_decode(1772964930123, schema, json.loads) == "2026-03-08T10:15:30.123Z"
    assert schema_decode("3q2+7w==", {"type": "bytes"}, json.loads) == bytes_of("\\xdeadbeef") == "\\xdeadbeef"
    assert (
        canonical(typed("1.28", "decimal", json.loads)) == canonical(typed("1.280", "decimal:3", json.loads)) == "1.28"
    )
    with pytest.raises(BadValue):
        instant_of("soon", "micros")


def debezium(amount, at, schema=True):
    payload = {"op": "c", "before": None, "after": {"id": 1, "amount": amount, "at": at}, "source": {"lsn": 7}}
    row = {
        "type": "struct",
        "field": "after",
        "fields": [
            {"type": "int64", "field": "id"},
            {**DECIMAL, "field": "amount"},
            {"type": "int64", "name": "io.debezium.time.MicroTimestamp", "field": "at"},
        ],
    }
    return [{"schema": {"type": "struct", "fields": [row]}, "payload": payload}] if schema else [payload]


ROW = {"coordinate": 7, "op": "insert", "key": "1"}


def test_rc_27_a_row_and_its_event_are_one_where_the_schema_is_there_and_no_guess_where_not(tmp_path):
    history = [{**ROW, "value": {"id": 1, "amount": 1234.560, "at": "2026-03-08T10:15:30.123456Z"}}]
    assert judged(tmp_path, history, debezium("AeJA", 1772964930123456), "--frontier=7")[0] == 0
    opaque = debezium("AeJA", 1772964930123456, schema=False)
    code, answer, _, _ = judged(tmp_path, history, opaque, "--frontier=7")
    assert (code, answer["premature"]) == (1, [0])
    told = ("--type=accepted:amount=decimal:2", "--type=accepted:at=micros")
    assert judged(tmp_path, history, opaque, "--frontier=7", *told)[0] == 0
    assert judged(tmp_path, history, opaque, "--frontier=7", told[0], "--type=accepted:at=millis")[0] != 0


def test_rc_28_an_instant_read_in_the_wrong_zone_is_another_content_and_no_second_event(tmp_path):
    history = [{**ROW, "value": {"id": 1, "at": "2026-02-01T01:00:00Z"}}]
    codes = {}
    for count in (1769936400000, 1769907600000):
        event = {"op": "c", "before": None, "after": {"id": 1, "at": count}, "source": {"lsn": 7}}
        code, answer, page, _ = judged(tmp_path, history, [event], "--frontier=7", "--type=accepted:at=millis")
        codes[count] = (code, answer["duplicates"], "record entry 0: altered" in page)
        assert ("at differs by exactly +8 h" in page) is (count == 1769936400000)
    assert codes == {1769936400000: (1, [], True), 1769907600000: (0, [], False)}


def test_rc_26_a_value_that_the_log_did_not_hold_is_neither_equal_nor_different(tmp_path):
    update = {"op": "u", "before": None, "after": {"id": 9, "status": "paid", "doc": PLACEHOLDER}, "source": {"lsn": 7}}
    held = {"coordinate": 7, "op": "update", "key": "9", "value": {"id": 9, "status": "paid", "doc": {"big": 1}}}
    code, answer, page, _ = judged(tmp_path, [update], [held], "--frontier=7")
    assert (code, answer["sink_delta"], answer["premature"]) == (3, [], [])
    assert "no value for doc" in page and "must be read from its table before it is sent again" in page
    other = {**held, "value": {**held["value"], "status": "open"}}
    assert judged(tmp_path, [update], [other], "--frontier=7")[1]["premature"] == [0]
    marked = json.loads(json.dumps(update).replace(PLACEHOLDER, "gone"))
    assert judged(tmp_path, [marked], [held], "--frontier=7", "--placeholder=gone")[0] == 3
    assert judged(tmp_path, [marked], [held], "--frontier=7")[0] == 1
    encoded = base64.b64encode(PLACEHOLDER.encode()).decode()
    row = {"a": PLACEHOLDER, "b": encoded, "c": [PLACEHOLDER], "d": "x", "e": bytes_of(encoded)}
    assert unknown_members(row, PLACEHOLDER) == ("a", "b", "c", "e")


def routed(event_id, value, **headers):
    return {"topic": "t", "partition": 0, "offset": 1, "headers": ["id", event_id], "key": "k", "payload": value}


def test_rc_35_router_payloads_null_doubly_encoded_and_binary_are_all_accepted(tmp_path):
    history = [
        {"coordinate": 1, "op": "insert", "key": "k", "event_id": "u1", "value": {"t": 1, "n": 1.0}},
        {"coordinate": 2, "op": "insert", "key": "k", "event_id": "u2", "value": None},
    ]
    options = ("--frontier=2", "--identity=event_id")
    for spelled in ('{"n": 1, "t":1}', json.dumps('{"n": 1, "t":1}')):
        topic = [routed("u1", spelled), routed("u2", None)]
        code, answer, page, _ = judged(tmp_path, history, topic, *options)
        assert (code, answer["sink_delta"], answer["premature"]) == (4, [], [])
        assert "outbox event router" in page and "given an event id is never used again" in page
    stray = [*topic, {**topic[1], "headers": []}]
    code, answer, _, _ = judged(tmp_path, history, stray, *options)
    assert (code, answer["read"]["accepted"]["ignored"]) == (4, {"tombstone": 1})
    binary = [{"coordinate": 3, "op": "insert", "key": "k", "event_id": "u3", "value": "\\x00ff"}]
    code, _, _, _ = judged(tmp_path, binary, [routed("u3", "AP8=")], "--frontier=3", *options[1:], "--type=value=bytes")
    assert code == 4
    assert judged(tmp_path, binary, [routed("u3", "AP8=")], "--frontier=3", *options[1:])[0] == 1
