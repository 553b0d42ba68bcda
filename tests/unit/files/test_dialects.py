"""CSV as tools write it, COPY's text, psql's table: one null, one text, one number in all of them."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recovery_api.domain.errors import BadFile
from tests.unit.files.exports import judged, positions, read, written
from workers.evidence import schemas
from workers.evidence.canonical import content_digest, payload_digest
from workers.evidence.files import ReadOptions, SpellingSigns, events_read

ROWS = [
    {"coordinate": 1, "op": "insert", "key": "a", "value": {"n": 1.5, "t": "x;y|z"}},
    {"coordinate": 2, "op": "update", "key": None, "value": "é"},
    {"coordinate": 3, "op": "delete", "key": "k", "value": None},
]
DIGESTS = [payload_digest(row["op"], row["key"], content_digest(row["value"])) for row in ROWS]

PSQL = """ coordinate |   op   | key |           value
------------+--------+-----+----------------------------
          1 | insert | a   | {"n": 1.50, "t": "x;y|z"}
          2 | update |     | "é"
          3 | delete | k   |
(3 rows)

"""
FILES = {
    "semicolons.csv": 'coordinate;op;key;value\n1;insert;a;"{""n"": 1.5, ""t"": ""x;y|z""}"\n2;update;;"""é"""\n3;delete;k;\n',
    "tabs.csv": 'coordinate\top\tkey\tvalue\n1\tinsert\ta\t"{""n"": 1.5, ""t"": ""x;y|z""}"\n2\tupdate\t\t"""é"""\n3\tdelete\tk\t\n',
    "tabs.tsv": 'coordinate\top\tkey\tvalue\n1\tinsert\ta\t{"n": 1.5, "t": "x;y|z"}\n2\tupdate\tNULL\t"""é"""\n3\tdelete\tk\t\\N\n',
    "bars.txt": 'coordinate|op|key|value\n1|insert|a|"{""n"": 1.5, ""t"": ""x;y|z""}"\n2|update||"""é"""\n3|delete|k|\n(3 rows)\n',
    "nulls.csv": 'coordinate,op,key,value\n1,insert,a,"{""n"":1.5,""t"":""x;y|z""}"\n2,update,NULL,"""é"""\n3,delete,k,\\N\n',
    "mark.csv": '\ufeffcoordinate,op,key,value\r\n1,insert,a,"{""n"":1.5,""t"":""x;y|z""}"\r\n2,update,,"""é"""\r\n3,delete,k,\r\n',
    "copy.txt": 'coordinate\top\tkey\tvalue\n1\tinsert\ta\t{"n": 1.5, "t": "x;y|z"}\n2\tupdate\t\\N\t"é"\n3\tdelete\tk\t\\N\n\\.\n',
    "psql.txt": PSQL,
    "bordered.txt": "+------------+--------+-----+---------------------------+\n"
    "| coordinate |   op   | key |           value           |\n"
    "+------------+--------+-----+---------------------------+\n"
    '|          1 | insert | a   | {"n": 1.50, "t": "x;y|z"} |\n'
    '|          2 | update |     | "é"                       |\n'
    "|          3 | delete | k   |                           |\n"
    "+------------+--------+-----+---------------------------+\n(3 rows)\n",
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_every_dialect_says_the_same(tmp_path, name, encoding):
    file, table = read(written(tmp_path, FILES[name].encode(encoding), name))
    assert table["payload_digest"].to_pylist() == DIGESTS
    assert file.notes.is_whole, file.notes.unread()
    assert file.notes.lines == FILES[name].count("\n")


def test_a_quoted_null_is_the_text_and_what_stands_for_null_can_be_told(tmp_path):
    path = written(tmp_path, 'coordinate,op,key,value\n1,insert,"NULL",1\n2,insert,-,1\n', "a.csv")
    assert read(path)[1]["key"].to_pylist() == ["NULL", "-"]
    told = events_read(path, SpellingSigns(), options=ReadOptions(null="-"))
    assert [key for batch in told.raw for key in batch["key"].to_pylist()] == ["NULL", None]


def test_copy_text_without_a_header_and_with_escapes_is_read_with_its_columns(tmp_path):
    content = '1\tinsert\ta\\tb\t{"t": "x\\\\ny"}\n2\tinsert\t\\N\t\\N\n3\tinsert\tk\n'
    options = ReadOptions(columns=("coordinate", "op", "key", "value"))
    file = events_read(written(tmp_path, content, "a.txt"), SpellingSigns(), options=options)
    table = pa.Table.from_batches(file.raw)
    assert table["key"].to_pylist() == ["a\tb", None]
    assert table["payload_digest"][0].as_py() == payload_digest("insert", "a\tb", content_digest({"t": "x\ny"}))
    assert [(b.kind, b.line) for b in file.notes.blemishes] == [("torn record", 3)]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (PSQL.replace("(3 rows)\n", ""), "unfinished tail"),
        (PSQL.replace("(3 rows)", "(4 rows)"), "rows missing"),
        (PSQL.replace('"é"', '"é'.ljust(26) + '+\n            |        |     | x"'), "torn record"),
        (PSQL.replace("| update |", "| upd"), "torn record"),
    ],
)
def test_psqls_table_that_is_not_whole_says_so(tmp_path, content, kind):
    file, table = read(written(tmp_path, content, "a.txt"))
    assert positions(table)[0] == 1 and kind in [blemish.kind for blemish in file.notes.blemishes]
    assert file.notes.is_balanced()


def test_wide_characters_take_two_columns_of_psqls_table(tmp_path):
    content = (
        " coordinate |   op   | key  | value\n------------+--------+------+-------\n"
        '          1 | insert | 日本 | "x"\n          2 | insert | ab   | "y"\n(2 rows)\n'
    )
    file, table = read(written(tmp_path, content, "a.txt"))
    assert (table["key"].to_pylist(), file.notes.is_whole) == (["日本", "ab"], True)


def test_own_column_names_are_mapped_with_constants_and_paths(tmp_path):
    table = 'id,aggregate_id,type,payload\n1,a,placed,"{""o"": {""n"": 1}}"\n2,b,placed,"{""o"": {""n"": 2}}"\n'
    accepted = [
        {"meta": {"seq": "1"}, "who": "a", "body": {"n": 1}},
        {"meta": {"seq": "2"}, "who": "b", "body": {"n": 3}},
    ]
    maps = [
        *("--map=history:coordinate=id", "--map=history:key=aggregate_id", "--map=history:value=payload"),
        *(
            "--map=accepted:coordinate=meta->seq",
            "--map=accepted:key=who",
            "--map=accepted:value=body->n",
            "--map=op==insert",
        ),
    ]
    names = ("history.csv", "accepted.jsonl")
    code, answer, _, _ = judged(tmp_path, table, accepted, "--frontier=2", *maps, names=names)
    assert (code, len(answer["premature"])) == (1, 2)  # the whole payload is no number
    maps[2] = "--map=history:value=n"
    flat = "id,aggregate_id,n\n1,a,1\n2,b,2\n"
    code, answer, page, _ = judged(tmp_path, flat, accepted, "--frontier=2", *maps, names=names)
    assert (code, answer["premature"], answer["keyed_sink_delta"]) == (1, [1], [])
    assert "CSV with commas: columns as mapped (as told)" in page


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("--map=colour=x",), "--map"),
        (("--map=key",), "--map"),
        (("--map=value=a", "--map=value_text=b"), "--map"),
        (("--preset=nothing",), "--preset"),
        (("--preset=pg-boss",), "preset"),
        (("--type=a=float",), "--type"),
        (("--format=xml",), "--format"),
        (("--frontier=1",), "--frontier"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(tmp_path, arguments, field):
    code, answer, _, _ = judged(tmp_path, ROWS, ROWS, "--frontier=3", *arguments)
    assert code == 2 and field in json.dumps(answer["error"])


def test_a_preset_maps_the_export_of_a_librarys_table(tmp_path):
    head = "SequenceNumber,MessageId,DestinationAddress,Body,SentTime\n"
    rows = '1,6f1c0b7e-1d2a-4c55-9a3e-0d9f5b7e2a10,queue:a,"{""n"":1}",2026-01-01\n'
    accepted = [{"coordinate": 1, "op": "insert", "key": "queue:a", "value_text": '{"n":1}'}]
    code, answer, _, _ = judged(
        tmp_path, head + rows, accepted, "--frontier=1", "--preset=history:masstransit", names=("h.csv", "a.jsonl")
    )
    assert (code, answer["premature"]) == (0, [])
    inbox = "MessageId\n{6F1C0B7E-1D2A-4C55-9A3E-0D9F5B7E2A10}\n"
    arguments = ("--preset=history:masstransit", "--map=accepted:event_id=MessageId", "--identity=event_id")
    code, answer, page, _ = judged(tmp_path, head + rows, inbox, "--frontier=1", *arguments, names=("h.csv", "a.csv"))
    assert code == 4 and "by identity" in page and "never" not in page.splitlines()[2].split("by identity")[0]


def test_parquet_binaries_structs_and_times_are_contents(tmp_path):
    import datetime

    rows = {
        "coordinate": [1],
        "op": pa.array(["insert"]).dictionary_encode(),
        "key": pa.array([b"k"], pa.binary()),
        "value": [{"b": b"\x00\xff", "at": datetime.datetime(2026, 3, 8, 10, 15, 30, 120000), "m": None}],
    }
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(rows), path)
    content = {"b": "\\x00ff", "at": "2026-03-08T10:15:30.12Z", "m": None}
    assert read(path)[1]["payload_digest"].to_pylist() == [payload_digest("insert", "k", content_digest(content))]
    pq.write_table(pa.table({**rows, "key": pa.array([b"\xff"], pa.binary())}), path)
    with pytest.raises(BadFile, match="no UTF-8"):
        read(path, schema=schemas.HISTORY)
