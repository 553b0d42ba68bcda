"""Recognised, ignored by kind and rejected add up to the lines read, whatever lies in a file; the fast way says what the
exact way says."""

from __future__ import annotations

import json
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from recovery_api.domain.errors import BadInput
from tests.unit.files.exports import SAMPLES, judged
from workers.evidence.canonical import ABSENT, Number, canonical, content_parse
from workers.evidence.files import FileNotes, SpellingSigns, event_at, events_read
from workers.evidence.quick import Uncertain, canonical_checked, canonical_quick, parse_quick

PIECES = [
    b'{"coordinate":1,"op":"insert","key":"k","value":1}\n',
    b'{"coordinate":2,"op":"insert","key":"k","value":{"a":[1,{"b":"\\u00e9"}]},"lane":"0"}\n',
    b'{"coordinate":3,"op":"delete","key":null,"value":null}{"coordinate":4,"op":"insert","key":"k","value":1}\n',
    b'{"coordinate":5,"op":"ins{"coordinate":6,"op":"insert","key":"k","value":1}\n',
    b'{"op":"c","before":null,"after":{"id":1},"source":{"lsn":7}}\n',
    b'{"op":"r","before":null,"after":{"id":1},"source":{"lsn":9}}\n',
    b'{"topic":"t","partition":0,"offset":7,"key":"k","payload":"{\\"op\\":\\"d\\",\\"before\\":null,\\"after\\":null,\\"source\\":{\\"lsn\\":8}}"}\n',
    *(
        b"null\n",
        b"\n",
        b"  \r\n",
        b"\0\0\0\n",
        b"\0\0{}\n",
        b"5\n",
        b"[1]\n",
        b'"x"\n',
        b"\xff\xfe\n",
        b'{"ts_ms":1}\n',
    ),
    b'{"schema":{},"payload":null}\n',
    b"a,b;c\td|e\n",
    b'"open quote,1\n',
    b" a | b\n---+---\n",
    b"(2 rows)\n",
    b'k\t{"a":1}\n',
]


@settings(max_examples=300)
@given(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=8),
    st.sampled_from(["a.jsonl", "a.csv", "a.txt"]),
    st.booleans(),
)
def test_every_line_is_an_event_ignored_or_rejected(tmp_path_factory, pieces, name, is_ended):
    path = tmp_path_factory.mktemp("law") / name
    content = b"".join(pieces)
    path.write_bytes(content if is_ended else content[:-1])
    try:
        file = events_read(path, SpellingSigns())
    except BadInput:
        return  # refused as a whole, with its line
    notes = file.notes
    assert notes.is_balanced(), (notes, notes.account())
    rows = sum(len(batch) for batch in file.raw)
    assert rows == notes.rows
    assert notes.is_whole or notes.unread()
    assert not notes.rejected or not notes.is_whole
    assert sorted(event_at(path, set(range(rows)))) == list(range(rows))  # read again, they are as many


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str).map(Number)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_the_fast_way_gives_the_canonical_text_or_nothing(content):
    assert canonical_checked(content) == canonical(content)
    spelled = json.dumps(content, ensure_ascii=False)
    exact = canonical(content_parse(spelled))
    try:
        quick = canonical_quick(parse_quick(spelled))[0]
    except Uncertain:
        return
    assert quick == exact


def test_the_fast_way_leaves_what_it_cannot_vouch_for():
    doubtful = ["1.5", "[1e2]", "18446744073709551616", '"\\ud83d"', "NaN", "{"]
    doubtful += ['{"a":1,"a":2}', '{"a" :1}', '{"a"  :1,"b":1,"b":2}', '{"a":":","a":1}', '{"a":1,"b\\\\":2,"a":3}']
    for text in doubtful:
        try:
            content = parse_quick(text)
            canonical_quick(content)
        except Uncertain:
            continue
        raise AssertionError(text)
    assert canonical_checked(Decimal("1.50")) == "1.5" and ABSENT is not None


def test_a_sample_of_a_connector_is_wholly_accounted_for():
    for path in sorted(SAMPLES.glob("*.jsonl")):
        if path.name.startswith(("cdc.transaction", "debezium-heartbeat", "src.message")):
            continue
        notes = events_read(path, SpellingSigns()).notes
        assert notes.is_balanced() and notes.rejected == 0 and notes.lines == len(path.read_bytes().splitlines())


def test_lines_that_do_not_add_up_bound_the_verdict():
    passed_over = FileNotes("a.jsonl", rows=2, lines=3, recognised=2)
    assert passed_over.is_whole and not passed_over.is_balanced()
    assert "These do not add up, so something was passed over." in passed_over.unread()[0]
    assert FileNotes("a.jsonl", rows=2, lines=2, recognised=2).unread() == ()


def test_the_account_is_in_the_page_and_in_the_object(tmp_path):
    rows = '{"coordinate":1,"op":"insert","key":"k","value":1}\n\n{"coordinate":2,"op"\n'
    code, answer, page, _ = judged(tmp_path, rows, rows, "--frontier=1")
    assert code == 3
    assert "3 lines: 1 with events, 1 ignored (1 blank line), 1 rejected (line 3)." in page
    assert answer["read"]["history"] == {
        "read_as": "JSON lines: Fencepost's own columns",
        "lines": 3,
        "recognised": 1,
        "events": 1,
        "ignored": {"blank": 1},
        "rejected": 1,
        "rejected_lines": [3],
    }
