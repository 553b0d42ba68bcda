"""Logical decoding messages as an outbox without a table: prefixes, replays, and messages that no transaction wrote."""

from __future__ import annotations

import base64
import json

from tests.unit.files.exports import SAMPLES, judged

PREFIX = "--prefix=history:outbox"


def message(lsn, content, tx=77, prefix="outbox", **source):
    text = content if isinstance(content, str) else json.dumps(content)
    told = {"prefix": prefix, "content": base64.b64encode(text.encode()).decode()}
    return {"op": "m", "source": {"lsn": lsn, "txId": tx, **source}, "message": told}


def entry(coordinate, name):
    return {"coordinate": coordinate, "op": "insert", "key": name, "value": {"id": name}}


A, B = message(9000, {"id": "a"}), message(9100, {"id": "b"})
OTHER = message(9200, "", None, "other")

TOPIC = """\
offset 40 {"op":"m","source":{"lsn":9000,"txId":77},"message":{"prefix":"outbox","content":"eyJpZCI6ImEifQ=="}}
offset 41 {"op":"m","source":{"lsn":9100,"txId":77},"message":{"prefix":"outbox","content":"eyJpZCI6ImIifQ=="}}
offset 42 {"op":"m","source":{"lsn":9100,"txId":77},"message":{"prefix":"outbox","content":"eyJpZCI6ImIifQ=="}}
offset 43 {"op":"m","source":{"lsn":9200,"txId":null},"message":{"prefix":"other","content":""}}
"""


def test_rc_38_a_message_published_again_is_one_event_and_the_sinks_second_one_is_doubled(tmp_path):
    """The case as it stands. Sink: a, b, b; the copy is laid to the replay that published b twice."""
    options = (PREFIX, r"--format=history:kcat:offset %o %s\n", "--frontier=end")
    record = [entry(9000, "a"), entry(9100, "b"), entry(9100, "b")]
    code, answer, page, _ = judged(tmp_path, TOPIC, record, *options)
    assert (code, answer["sink_delta"], answer["premature"]) == (1, [], []), answer
    (doubled,) = answer["duplicates"]
    assert (doubled["coordinate"], doubled["count"], doubled["published"]) == (9100, 2, 2)
    assert "Accepted more than once: 9100 (2 times; its connector published it 2 times)" in page
    read = answer["read"]["history"]
    assert (read["lines"], read["events"], read["rejected"]) == (4, 2, 0)
    assert read["ignored"] == {"replay": 1, "other prefix": 1}
    assert "1 message published again, 1 message of another prefix" in page
    assert judged(tmp_path, TOPIC, record[:2], *options)[0] == 0
    code, answer, _, _ = judged(tmp_path, TOPIC, record[:1], *options)
    assert (code, answer["sink_delta"]) == (1, [9100])


def test_rc_38_the_same_by_message_id_and_in_every_dump(tmp_path):
    ids = [{"event_id": one} for one in "abb"]
    options = (PREFIX, "--frontier=end", "--identity=event_id", "--map=history:event_id=message.content.id")
    wrapped = [
        {"topic": "t", "partition": 0, "offset": 40 + at, "key": '{"prefix":"outbox"}', "payload": json.dumps(one)}
        for at, one in enumerate([A, B, B, OTHER])
    ]
    schema = [{"schema": {"type": "struct", "fields": []}, "payload": one} for one in (A, B, B, OTHER)]
    for history in ([A, B, B, OTHER], wrapped, schema):
        code, answer, _, _ = judged(tmp_path, history, ids, *options)
        assert (code, answer["sink_delta"]) == (1, []), answer
        assert [(one["coordinate"], one["count"], one["published"]) for one in answer["duplicates"]] == [(9100, 2, 2)]
        assert answer["read"]["history"]["ignored"] == {"replay": 1, "other prefix": 1}
        assert judged(tmp_path, history, ids[:2], *options)[0] == 4


def test_rc_38_equal_contents_at_two_positions_are_two_events(tmp_path):
    history = [A, B, message(9300, {"id": "b"})]
    code, answer, _, _ = judged(tmp_path, history, [entry(9000, "a"), entry(9100, "b")], PREFIX, "--frontier=end")
    assert (code, answer["sink_delta"], answer["duplicates"]) == (1, [9300], [])


def test_rc_38_a_message_that_no_transaction_wrote_is_tied_to_no_commit(tmp_path):
    history = [A, message(9100, {"id": "b"}, None)]
    record = [entry(9000, "a"), entry(9100, "b")]
    for accepted in (record, record[:1]):
        code, answer, page, _ = judged(tmp_path, history, accepted, PREFIX, "--frontier=end")
        assert (code, answer["sink_delta"]) == (3, [])
        assert (answer["read"]["history"]["rejected"], answer["read"]["history"]["rejected_lines"]) == (1, [2])
        assert "line 2, byte" in page and "nothing ties it to a commit" in page
    told = "--non-transactional=history:committed"
    code, _, page, _ = judged(tmp_path, history, record, PREFIX, "--frontier=end", told)
    assert code == 4
    assert "given messages that no transaction wrote are committed events: all 2 events" in page
    assert judged(tmp_path, history, record[:1], PREFIX, "--frontier=end", told)[1]["sink_delta"] == [9100]
    code, answer, _, _ = judged(tmp_path, history, record, PREFIX, "--frontier=end", "--non-transactional=yes")
    assert code == 2 and "Known: committed." in json.dumps(answer)


def test_rc_38_one_position_with_two_contents_is_rejected_with_its_line(tmp_path):
    history = [A, B, message(9100, {"id": "c"})]
    code, answer, page, _ = judged(tmp_path, history, [entry(9000, "a"), entry(9100, "b")], PREFIX, "--frontier=end")
    assert (code, answer["read"]["history"]["rejected_lines"]) == (3, [3])
    assert "its log position 9100 was that of a message with another content before" in page


def test_a_replay_is_known_by_its_own_position_whatever_commit_came_before_it(tmp_path):
    """After a restart the connector may name another commit before a message than it did the first time."""
    history = [
        message(lsn, {"id": name}, sequence=json.dumps([commit, str(lsn)]))
        for lsn, name, commit in ((9000, "a", "8000"), (9100, "b", "9050"), (9000, "a", None))
    ]
    code, answer, _, _ = judged(tmp_path, history, history, "--prefix=outbox", "--frontier=end")
    assert (code, answer["read"]["history"]["ignored"]) == (1, {"replay": 1})
    record = [history[0], history[0], history[1]]
    (doubled,) = judged(tmp_path, history, record, "--prefix=outbox", "--frontier=end")[1]["duplicates"]
    assert (doubled["coordinate"], doubled["published"]) == ("0/1F40:0/2328", 2)


def test_a_replay_in_another_part_of_the_folder_is_known(tmp_path):
    folder = tmp_path / "topic"
    folder.mkdir()
    for name, rows in (("a.jsonl", [A, B]), ("b.jsonl", [B, message(9300, {"id": "c"})])):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    record = [entry(9000, "a"), entry(9100, "b"), entry(9300, "c")]
    code, answer, _, _ = judged(tmp_path, folder, record, PREFIX, "--frontier=end")
    assert (code, answer["read"]["history"]["ignored"]) == (0, {"replay": 1})


def test_rows_of_tables_beside_the_messages_are_events_only_where_their_table_is_asked_for(tmp_path):
    row = {"op": "c", "before": None, "after": {"id": 1}, "source": {"lsn": 9050, "schema": "public", "table": "t"}}
    code, answer, _, _ = judged(tmp_path, [A, row], [entry(9000, "a")], PREFIX, "--frontier=end")
    assert (code, answer["read"]["history"]["ignored"]) == (0, {"other table": 1})
    _, answer, _, _ = judged(tmp_path, [A, row], [entry(9000, "a")], PREFIX, "--frontier=end", "--table=history:t")
    assert answer["sink_delta"] == [9050]


def test_messages_that_nobody_asked_for_are_named_by_prefix(tmp_path):
    row = {"op": "c", "before": None, "after": {"id": 1}, "source": {"lsn": 9050}}
    code, answer, page, _ = judged(tmp_path, [row, A, OTHER], [row], "--frontier=end")
    assert (code, answer["read"]["history"]["ignored"]) == (0, {"message": 2})
    assert "(--prefix says which are) (outbox 1, other 1)" in page


def test_a_message_as_its_connector_wrote_it(tmp_path):
    """Its content is a plain text, which has to be said."""
    sample = SAMPLES / "src.message.jsonl"
    code, answer, _, _ = judged(tmp_path, sample, sample, "--prefix=x", "--type=value=text", "--frontier=end")
    assert (code, answer["read"]["history"]["events"]) == (0, 1)
    code, answer, _, _ = judged(tmp_path, sample, sample, "--prefix=x", "--frontier=end")
    assert code == 2 and "plain text is --type value=text" in json.dumps(answer)


def test_the_content_of_a_message_is_where_fields_are_mapped_from(tmp_path):
    history = [message(9000, {"order": {"no": "k7"}, "body": {"n": 1}})]
    record = [{"coordinate": 9000, "op": "insert", "key": "k7", "value": {"n": 1}}]
    maps = ("--map=history:key=message.content.order.no", "--map=history:value=message.content.body")
    assert judged(tmp_path, history, record, PREFIX, *maps, "--frontier=end")[0] == 0
