"""Dumps of topics: kcat's, the console consumer's, with everything that they can print."""

from __future__ import annotations

import json

import pytest

from tests.unit.files.exports import SAMPLES, judged
from workers.evidence.files.messages import kcat_pattern

HISTORY = [{"coordinate": n, "op": "insert", "key": "k", "event_id": f"u{n}", "value": {"n": n}} for n in (1, 2, 3)]
BY_ID = ("--frontier=3", "--identity=event_id")


def test_kcats_json_of_a_routed_outbox_is_matched_by_header_id(tmp_path):
    topic = [
        {
            "topic": "outbox.order",
            "partition": n % 2,
            "offset": n,
            "tstype": "create",
            "ts": 1,
            "broker": 0,
            "headers": ["id", f"u{n}", "eventType", "X"],
            "key": "k",
            "payload": json.dumps({"n": n}),
        }
        for n in (1, 3)
    ]
    code, answer, page, _ = judged(tmp_path, HISTORY, topic, *BY_ID)
    assert (code, answer["sink_delta"], answer["premature"]) == (1, [2], [])
    assert "read as JSON lines of kcat -J: messages of Debezium's outbox event router" in page


def test_the_routers_own_topic_is_judged_by_the_sequence_in_its_headers(tmp_path):
    topic = SAMPLES / "outbox.order.jsonl"
    messages = [json.loads(line) for line in topic.read_text().splitlines()]
    history = [
        {
            "coordinate": int(dict(message["headers"])["fp-seq"]),
            "op": "insert",
            "key": message["key"],
            "value": message["value"],
        }
        for message in messages
    ]
    maps = ("--map=accepted:coordinate=headers->fp-seq", "--map=accepted:lane=headers->fp-lane")
    code, answer, _, _ = judged(tmp_path, history, topic, "--frontier=7", *maps)
    assert (code, answer["sink_delta"], answer["read"]["accepted"]["events"]) == (0, [], 5)
    history.append({"coordinate": 6, "op": "insert", "key": "9", "value": 1})
    assert judged(tmp_path, history, topic, "--frontier=7", *maps)[1]["sink_delta"] == [6]


CONSOLE = (
    'CreateTime:1795866452521\tPartition:0\tOffset:5\tid:u1,eventType:X\tk\t{"n": 1}\n'
    'CreateTime:1795866452522\tPartition:0\tOffset:6\tid:u2\tk\t{"n": 2}\n'
    "CreateTime:1795866452523\tPartition:1\tOffset:0\tNO_HEADERS\tk\tnull\n"
    "Processed a total of 3 messages\n"
)


def test_a_console_dump_with_everything_printed_is_read(tmp_path):
    code, answer, page, _ = judged(tmp_path, HISTORY, CONSOLE, *BY_ID, names=("history.jsonl", "accepted.txt"))
    assert (code, answer["sink_delta"]) == (1, [3])
    read = answer["read"]["accepted"]
    assert read["ignored"] == {"tombstone": 1, "program's own": 1} and read["lines"] == 4
    assert "a dump of the console consumer" in page


def test_a_console_dump_with_keys_alone_and_a_value_of_two_lines_which_is_rejected(tmp_path):
    dump = 'k\t{"op":"c","before":null,"after":{"id":1},"source":{"lsn":10}}\nk\tnull\nthe rest of a value\n'
    history = [{"coordinate": 10, "op": "insert", "key": "k", "value": {"id": 1}}]
    code, answer, page, _ = judged(tmp_path, history, dump, "--frontier=10", names=("h.jsonl", "a.txt"))
    assert (code, answer["read"]["accepted"]["rejected_lines"]) == (3, [3])
    assert answer["read"]["accepted"]["ignored"] == {"tombstone": 1}
    assert "Use kcat -J" in page


def test_kcats_format_string_is_taken_as_it_was_given(tmp_path):
    dump = '0/5 k 7 {"n":1}\n0/6 k 7 {"n":2}\n0/7 k -1 \n0/8 k 9 {"n":3}\n% Reached end of topic t [0]\n'
    maps = ("--format=accepted:kcat:%p/%o %k %S %s\\n", "--map=history:coordinate=coordinate", "--map=accepted:lane==0")
    history = [{"coordinate": 4 + n, "op": "insert", "key": "k", "value": {"n": n}} for n in (1, 2)]
    code, answer, _, _ = judged(tmp_path, history, dump, "--frontier=6", *maps, names=("h.jsonl", "a.txt"))
    read = answer["read"]["accepted"]
    assert (code, answer["sink_delta"], read["rejected_lines"]) == (
        3,
        [],
        [4],
    )  # nine bytes were said, and seven are there
    assert read["ignored"] == {"tombstone": 1, "program's own": 1}
    null = '0/5 k {"n":1}\n0/6 k \n'
    code, answer, page, _ = judged(
        tmp_path, history, null, "--frontier=6", "--format=accepted:kcat:%p/%o %k %s\\n", names=("h.jsonl", "a.txt")
    )
    assert (code, answer["read"]["accepted"]["rejected_lines"]) == (3, [2]) and "look alike" in page


@pytest.mark.parametrize("spelled", ["%s", "%s %s\\n", "%z\\n", "a\\nb %s\\n"])
def test_format_strings_that_cannot_be_read_back_are_refused(tmp_path, spelled):
    with pytest.raises(ValueError):
        kcat_pattern(spelled)
    code, answer, _, _ = judged(tmp_path, HISTORY, "x\n", "--frontier=1", f"--format=accepted:kcat:{spelled}")
    assert code == 2 and answer["error"]["data"]["field"] == "--format"


def test_several_partitions_are_judged_in_one_call_each_at_its_frontier(tmp_path):
    def topic(*places):
        return [
            {"topic": "t", "partition": p, "offset": o, "key": "k", "payload": json.dumps({"p": p, "o": o})}
            for p, o in places
        ]

    history = topic((0, 0), (0, 1), (1, 0), (1, 2), (10, 7))
    accepted = topic((0, 0), (0, 1), (1, 0), (10, 7), (10, 7))
    code, answer, page, _ = judged(tmp_path, history, accepted, "--frontier=end")
    assert code == 1 and answer["status"] == "hazard"
    assert {lane: (one["frontier"], one["sink_delta"]) for lane, one in answer["lanes"].items()} == {
        "0": ("1", []),
        "1": ("2", [2]),
        "10": ("7", []),
    }
    assert "Lane 1: 1 of 2 events up to 2 never reached the sink." in page
    code, answer, _, _ = judged(tmp_path, history, accepted, "--frontier=0=1,1=0", "--frontier=10=7")
    assert answer["lanes"]["1"]["sink_delta"] == []
    assert judged(tmp_path, history, accepted, "--frontier=1")[0] == 2
    assert judged(tmp_path, history, accepted, "--frontier=0=1")[0] == 2
    assert judged(tmp_path, history, accepted, "--frontier=end", "--floor=7=1")[0] == 2


def test_a_torn_line_of_a_dump_is_rejected_and_never_taken_for_text(tmp_path):
    torn = CONSOLE.replace('{"n": 1}', '{"n": ').replace("Processed a total of 3 messages\n", "") + "CreateTime:1\tPart"
    code, answer, _, _ = judged(tmp_path, HISTORY, torn, *BY_ID, names=("history.jsonl", "accepted.txt"))
    assert (code, answer["read"]["accepted"]["rejected_lines"]) == (3, [1, 4])
    glued = [
        {"topic": "t", "partition": 0, "offset": 1, "headers": ["id", "u1"], "key": "k", "payload": '{"n":{"n":2}'}
    ]
    code, answer, _, _ = judged(tmp_path, HISTORY, [*glued, {**glued[0], "payload": '{"n":1}'}], *BY_ID)
    assert (code, answer["read"]["accepted"]["rejected_lines"]) == (3, [1])
