"""Change logs judged: what orders their events, what holds none, which snapshot reads are events (RC cases by id)."""

from __future__ import annotations

import json

import pytest

from tests.unit.files.exports import SAMPLES, judged


def rows(name):
    return [json.loads(line) for line in (SAMPLES / name).read_text().splitlines()]


def values(name):
    return [row["value"] for row in rows(name)]


def change(op, after, **source):
    return {"op": op, "before": None, "after": after, "source": source}


def ids(*accepted):
    return [{"event_id": one} for one in accepted]


def test_rc_08_log_positions_interleave_and_commits_order_them(tmp_path):
    """a1 < a2 < b1 < b2 by (commit, position); b1 is lost although its position lies below what was delivered."""
    events = [("a1", 41, 3000, 3800), ("a2", 41, 3200, 3800), ("b1", 42, 3100, 3900), ("b2", 42, 3300, 3900)]
    history = [
        {"txId": tx, "lsn": lsn, "lsn_commit": commit, "id": name, "op": "c"} for name, tx, lsn, commit in events
    ]
    maps = ("--map=history:coordinate=lsn_commit:lsn", "--map=history:event_id=id", "--map=history:key=id")
    code, answer, page, _ = judged(
        tmp_path, history, ids("a1", "a2", "b2"), "--frontier=3900:3300", "--identity=event_id", *maps
    )
    assert (code, answer["sink_delta"], answer["coordinates_ascending"]) == (1, ["3900:3100"], True), answer
    assert "never reached the sink" in page


def test_rc_08_debeziums_own_events_are_ordered_by_the_commit_before_them(tmp_path):
    source = [("a1", 3000, None), ("a2", 3200, None), ("b1", 3100, 3800), ("b2", 3300, 3800)]
    history = [
        change(
            "c", {"id": name}, lsn=lsn, sequence=json.dumps([commit and str(commit), str(lsn)]), table="t", schema="s"
        )
        for name, lsn, commit in source
    ]
    accepted = [history[place] for place in (0, 1, 3)]
    code, answer, page, _ = judged(tmp_path, history, accepted, "--frontier=3300")
    assert (code, answer["sink_delta"]) == (1, ["0/ED8:0/C1C"])
    assert page.startswith("--history history.jsonl read as JSON lines: Debezium change events.")
    code, answer, _, _ = judged(tmp_path, history, accepted, "--frontier=9999")
    assert code == 2 and "position of no event" in answer["error"]["data"]["problem"]


def test_rc_09_events_that_share_a_log_position_are_told_apart(tmp_path):
    history = [change("c", {"id": n}, lsn=8800, txId=90) for n in (1, 2, 3)]
    code, answer, page, rests = judged(tmp_path, history, history[:1], "--frontier=8800")
    assert (code, answer["sink_delta"]) == (1, [8800, 8800])
    assert "Lost: 8800 (key 2), 8800 (key 3)" in page
    assert "3 events have the coordinate 8800" in rests and "does not say which of them were delivered" in rests


def test_rc_13_binary_log_files_are_ordered_by_their_number(tmp_path):
    places = [
        ("mysql-bin.999999", 154),
        ("mysql-bin.999999", 7000),
        ("mysql-bin.1000000", 4),
        ("mysql-bin.1000000", 200),
    ]
    history = [change("c", {"id": n}, file=file, pos=pos, row=0) for n, (file, pos) in enumerate(places)]
    code, answer, _, _ = judged(tmp_path, history, history, "--frontier=mysql-bin.1000000:200")
    assert (code, answer["coordinates_ascending"]) == (0, True)
    code, answer, _, _ = judged(tmp_path, history, history[:2], "--frontier=mysql-bin.1000000:4")
    assert (code, answer["sink_delta"]) == (1, ["1000000:4"])
    bare = [change("c", {"id": 1}, file="binlog.9", pos=900), change("c", {"id": 2}, file="binlog.10", pos=4)]
    assert judged(tmp_path, bare, bare[1:], "--frontier=end")[1]["sink_delta"] == ["000009:900"]
    nameless = [change("c", {"id": 1}, file="mysql-bin.index", pos=4)]
    code, answer, _, _ = judged(tmp_path, nameless, nameless, "--frontier=mysql-bin.1:4")
    assert code == 2 and "mysql-bin.index:4" in json.dumps(answer)


UA, UB = "aaaaaaaa-0000-0000-0000-000000000001", "bbbbbbbb-0000-0000-0000-000000000002"


def test_rc_15_each_server_of_a_gtid_is_a_lane_and_what_was_purged_is_unknown(tmp_path):
    def gtids(server, *numbers):
        return [{"gtid": f"{server}:{n}", "op": "c", "key": str(n), "value": n} for n in numbers]

    history = gtids(UA, *range(41, 101)) + gtids(UB, *range(1, 8))
    taken = gtids(UA.upper(), *range(41, 61), 65) + gtids(f" {UB} ", *range(1, 8))
    maps = ("--map=coordinate=gtid", f"--floor={UA}=41", "--frontier=end")
    code, answer, page, _ = judged(tmp_path, history, taken, *maps)
    assert answer["lanes"][UA]["sink_delta"] == [*range(61, 65), *range(66, 101)]
    assert answer["lanes"][UB]["sink_delta"] == []
    assert (code, answer["lanes"][UB]["status"]) == (1, "exactly_once")
    whole = gtids(UA, *range(41, 101)) + gtids(UB, *range(1, 8))
    code, answer, page, _ = judged(tmp_path, history, whole, *maps)
    assert (code, answer["lanes"][UA]["status"]) == (
        3,
        "unknown",
    )  # 1 to 40 are gone, and were never lost by anybody here
    assert "Nothing shows what lay below the floor" in page


def test_rc_15_a_gtid_set_is_a_frontier_where_it_has_no_holes(tmp_path):
    """The record may have holes, which are what is lost; a frontier with holes would be no frontier."""
    history = [{"gtid": f"{UA}:{n}", "op": "c", "key": str(n), "value": n} for n in range(41, 101)]
    history += [{"gtid": f"{UB}:{n}", "op": "c", "key": str(n), "value": n} for n in range(1, 8)]
    taken = [row for row in history if row["gtid"] not in {f"{UA}:{n}" for n in [*range(61, 65), *range(66, 101)]}]
    executed = f"{UA.upper()}: 41-60 : 61-100,\n {UB}:1-3:4-7"
    options = ("--map=coordinate=gtid", f"--floor={UA}=41")
    code, answer, _, _ = judged(tmp_path, history, taken, *options, f"--frontier={executed}")
    assert (code, answer["lanes"][UA]["frontier"], answer["lanes"][UB]["frontier"]) == (1, "100", "7")
    assert answer["lanes"][UA]["sink_delta"] == [*range(61, 65), *range(66, 101)]
    for holes in (f"{UA}:41-60:65,{UB}:1-7", f"{UA}:42-100,{UB}:1-7"):
        code, answer, _, _ = judged(tmp_path, history, taken, *options, f"--frontier={holes}")
        assert code == 2 and "the GTID set has holes" in answer["error"]["data"]["problem"]


def test_rc_16_the_same_position_of_two_slots_is_two_coordinates(tmp_path):
    events = [("s1", 900, "k1"), ("s1", 905, "k2"), ("s2", 12, "k3"), ("s2", 905, "k4")]
    history = [{"slot": slot, "lsn": lsn, "id": key, "op": "c", "value": 1} for slot, lsn, key in events]
    maps = ("--map=coordinate=lsn", "--map=key=id")
    code, answer, _, _ = judged(
        tmp_path, history, history[:2], *maps, "--map=lane=slot", "--frontier=s1=905", "--frontier=s2=905"
    )
    assert code == 1
    assert [answer["lanes"][slot]["sink_delta"] for slot in ("s1", "s2")] == [[], [12, 905]]
    code, answer, _, rests = judged(tmp_path, history, history[:2], *maps, "--frontier=905")
    assert answer["sink_delta"] == [905, 12] or answer["sink_delta"] == [12, 905]
    assert "2 events have the coordinate 905" in rests


def test_rc_17_stream_ids_are_pairs_of_unsigned_numbers(tmp_path):
    top = 2**64 - 1
    spelled = ["7-3", "7-20", "8-0", "1700000000000-9", "1700000000000-10", f"{top}-{top - 1}", f"{top}-{top}"]
    history = [{"coordinate": one, "op": "insert", "key": None, "value": 1} for one in spelled]
    code, answer, _, _ = judged(tmp_path, history, history[:1], "--frontier=end")
    assert (code, answer["coordinates_ascending"], answer["sink_delta"]) == (1, True, spelled[1:])
    assert judged(tmp_path, history, [], "--frontier=7")[1]["sink_delta"] == ["7-3", "7-20"]
    below = judged(tmp_path, history, history, "--frontier=8", "--floor=7")[1]
    assert below["retained"]["exactly_once"] is True
    incomplete = [*history, {"coordinate": "5", "op": "insert", "key": None, "value": 1}]
    assert judged(tmp_path, incomplete, history, "--frontier=end")[0] == 2


def test_rc_20_deletes_and_tombstones_of_an_outbox_are_no_events(tmp_path):
    history = [
        {"key": {"id": 7}, "value": {"op": "c", "before": None, "after": {"id": 7, "type": "OrderPlaced"}}},
        {"key": {"id": 7}, "value": {"op": "d", "before": {"id": 7, "type": None}, "after": None}},
        {"key": {"id": 7}, "value": {"op": "d", "before": None, "after": None}},
        {"key": {"id": 7}, "value": None},
        {"key": {"id": 7}, "value": ""},
    ]
    options = ("--preset=history:debezium-outbox", "--map=history:coordinate=after.id", "--identity=event_id")
    code, answer, page, _ = judged(tmp_path, history, ids(7), "--frontier=7", *options)
    assert (code, answer["sink_delta"], answer["duplicates"]) == (4, [], [])
    read = answer["read"]["history"]
    assert (read["lines"], read["recognised"], read["rejected"]) == (5, 1, 0)
    assert read["ignored"] == {"housekeeping": 2, "tombstone": 1, "empty value": 1}
    assert "5 lines: 1 with events, 4 ignored (2 updates or deletes of outbox rows, 1 tombstone" in page


def test_rc_70_the_log_of_an_outbox_whose_rows_are_removed_first_shows_what_was_lost(tmp_path):
    """From the table alone 10 and 11 are unknowable; its change log has both, and what it was to send."""

    def row(op, number):
        body = {"id": number, "type": "OrderPlaced"}
        sides = {"before": None, "after": body} if op == "c" else {"before": body, "after": None}
        return {"key": {"id": number}, "value": {"op": op, **sides}}

    history = [row("c", 10), row("d", 10), row("c", 11), row("d", 11), row("c", 12)]
    options = ("--preset=history:debezium-outbox", "--map=history:coordinate=after.id", "--identity=event_id")
    code, answer, _, _ = judged(tmp_path, history, ids(10), "--frontier=11", *options)
    assert (code, answer["sink_delta"], answer["duplicates"]) == (1, [11], []), "12 is above the frontier: pending"


def test_rc_22_five_shapes_in_one_file_each_line_accounted_for(tmp_path):
    history = [
        {"schema": {}, "payload": {"op": "c", "before": None, "after": {"id": 1}, "source": {"lsn": 10}}},
        {"op": "c", "before": None, "after": {"id": 2}, "source": {"lsn": 11}},
        {"op": "c", "before": None, "after": '{"_id":3}', "source": {"ord": 1}},
        {
            "source": {"file": "binlog.000004", "pos": 90},
            "databaseName": "shop",
            "ddl": "ALTER TABLE …",
            "tableChanges": [],
        },
        {"id": 5, "__op": "c", "__source_lsn": 14},
        {"hello": "world"},
    ]
    code, answer, page, _ = judged(tmp_path, history, history[:5], "--frontier=14")
    assert code == 3  # a line was rejected: what it held is not known
    read = answer["read"]["history"]
    assert (read["lines"], read["recognised"], read["ignored"]) == (6, 4, {"schema change": 1})
    assert (read["rejected"], read["rejected_lines"]) == (1, [6])
    assert answer["sink_delta"] == []
    assert "line 6, byte" in page and "no change event" in page
    code, answer, _, _ = judged(tmp_path, history[:5], history[:5], "--frontier=14")
    assert (code, answer["read"]["accepted"]["events"]) == (0, 4)


@pytest.mark.parametrize("mark", ["incremental", {"string": "incremental"}, True])
def test_rc_24_a_row_that_a_snapshot_reads_again_is_no_second_event(tmp_path, mark):
    history = [
        change("r", {"id": 1}, lsn=500, snapshot="first"),
        change("r", {"id": 2}, lsn=500, snapshot=True),
        change("r", {"id": 3}, lsn=500, snapshot="last"),
        change("c", {"id": 4}, lsn=510, snapshot="false"),
        change("r", {"id": 2}, lsn=620, snapshot=mark),
    ]
    options = ("--frontier=510", "--identity=event_id", "--map=history:event_id=after.id")
    code, answer, _, _ = judged(tmp_path, history, ids(1, 2, 2, 3, 4), *options)
    assert (code, answer["sink_delta"]) == (1, [])
    assert [event["count"] for event in answer["duplicates"]] == [2]
    assert answer["duplicates"][0]["coordinate"] == 500
    assert answer["read"]["history"]["ignored"] == {"re-read": 1}
    assert judged(tmp_path, history, ids(1, 2, 3, 4), *options)[0] == 4


def test_rc_66_a_trimmed_stream_gives_a_bound_and_no_verdict(tmp_path):
    history = [{"coordinate": n, "op": "insert", "key": None, "event_id": f"e{n}", "value": n} for n in range(1, 7)]
    entries = [{"id": f"{10 + n}-0", "ev": f"e{n}"} for n in (3, 4, 5)]
    options = ("--frontier=6", "--identity=event_id", "--map=accepted:event_id=ev")
    code, answer, page, _ = judged(tmp_path, history, entries, *options, "--trimmed=2")
    assert (code, answer["sink_delta"]) == (3, [1, 2, 6])
    assert "of 3 missing events at most 2 may have been accepted there, so at least 1 never was" in page
    assert judged(tmp_path, history, entries, *options)[0] == 1


def test_an_id_that_two_events_of_the_history_have_is_refused(tmp_path):
    history = [
        {"coordinate": n, "op": "insert", "key": None, "event_id": one, "value": n} for n, one in ((1, 7), (2, 7))
    ]
    code, answer, _, _ = judged(tmp_path, history, ids(7), "--frontier=2", "--identity=event_id")
    assert code == 2
    assert "'7' names two events of the history" in answer["error"]["data"]["problem"]


def test_debeziums_own_records_are_read_as_they_were_written(tmp_path):
    """A topic of PostgreSQL's connector: snapshot reads, a changed primary key, tombstones; and MariaDB's."""
    orders = rows("cdc.public.orders.jsonl")
    code, answer, page, _ = judged(tmp_path, orders, [row for row in orders if row["offset"] != 6], "--frontier=end")
    assert (code, answer["sink_delta"]) == (1, ["0/17830F8:0/1783160"])
    read = answer["read"]["history"]
    assert (read["events"], read["ignored"], read["rejected"]) == (8, {"tombstone": 2}, 0)
    assert "JSON lines of whole messages: Debezium change events" in page
    bare = [row["value"] for row in orders]
    lines = "".join(json.dumps(value) + "\n" for value in bare)
    assert judged(tmp_path, lines, lines, "--frontier=end")[1]["read"]["accepted"]["ignored"] == {"tombstone": 2}
    outbox = rows("mdb.shop.outbox.jsonl")
    code, answer, page, _ = judged(tmp_path, outbox, outbox[:3], "--frontier=end")
    assert (code, answer["sink_delta"]) == (1, ["000001:3456:1"])
    assert "of an outbox table" in page


def test_what_a_connector_writes_beside_its_events_is_ignored_by_kind(tmp_path):
    mixed = [
        *values("cdc.public.orders.jsonl"),
        *values("cdc.transaction.jsonl"),
        *values("src.message.jsonl"),
        *values("debezium-heartbeat.cdc.jsonl"),
    ]
    lines = "".join(json.dumps(value) + "\n" for value in mixed)
    _, answer, _, _ = judged(tmp_path, lines, lines, "--frontier=end")
    read = answer["read"]["history"]
    kinds = {"tombstone": 2, "transaction": len(values("cdc.transaction.jsonl")), "message": 1}
    assert read["ignored"] == {**kinds, "heartbeat": len(values("debezium-heartbeat.cdc.jsonl"))}
    assert read["recognised"] + sum(read["ignored"].values()) == read["lines"]


def test_a_file_of_two_tables_is_refused_naming_both_and_one_can_be_chosen(tmp_path):
    history = [
        change("c", {"id": 1}, lsn=10, schema="public", table="orders"),
        change("c", {"id": 1}, lsn=11, schema="public", table="customers"),
    ]
    code, answer, _, _ = judged(tmp_path, history, history, "--frontier=end")
    assert code == 2
    assert "public.customers (from line 2), public.orders (from line 1)" in answer["error"]["data"]["problem"]
    code, answer, _, _ = judged(tmp_path, history, history, "--frontier=end", "--table=orders")
    assert (code, answer["read"]["history"]["ignored"]) == (0, {"other table": 1})


def test_rc_32_the_leaves_of_a_partitioned_table_are_one_history(tmp_path):
    """The relay read the leaf of February alone: what was committed to March's, made after it had started, is lost."""
    leaves = ("outbox_2026_02", "outbox_2026_03", "outbox_2026_03", "audit_log")
    log = [
        change("c", {"id": number}, lsn=number, schema="public", table=leaf)
        for number, leaf in zip((10, 11, 12, 13), leaves, strict=True)
    ]
    for tables in (["outbox_2026_*"], ["outbox_2026_02", "public.outbox_2026_03"]):
        asked = [f"--table={table}" for table in tables]
        code, answer, _, _ = judged(tmp_path, log, log[:1], "--frontier=12", *asked)
        assert (code, answer["sink_delta"]) == (1, [11, 12]), answer
        assert answer["read"]["history"]["ignored"] == {"other table": 1}
    code, answer, _, _ = judged(tmp_path, log, log[:1], "--frontier=12")
    assert code == 2 and "Leaves of one partitioned table" in answer["error"]["data"]["remedy"], "never guessed"


def test_a_snapshot_row_whose_numbers_need_the_exact_way_is_read_once_and_kept(tmp_path):
    history = [change("r", {"id": 1, "price": 1.5}, lsn=500, snapshot="first")]
    code, answer, _, _ = judged(tmp_path, history, history, "--frontier=500")
    assert (code, answer["read"]["history"]["ignored"]) == (0, {})


def test_rc_15_a_gtid_in_the_products_own_columns_is_its_servers_lane_too(tmp_path):
    spelled = [f"{UA.upper()} : 41", f"{UB}:7", f"{UA}:42"]
    history = [{"coordinate": one, "op": "insert", "key": None, "value": 1} for one in spelled]
    code, answer, _, _ = judged(tmp_path, history, history[:2], f"--floor={UA}=41", "--frontier=end")
    assert (code, answer["lanes"][UA]["sink_delta"], answer["lanes"][UB]["sink_delta"]) == (1, [42], [])
