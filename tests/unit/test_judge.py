"""`manage.py judge`, called and as a process of its own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

ROOT = Path(__file__).parents[2]


def event(coordinate, value=1, **more):
    return {"coordinate": coordinate, "op": "insert", "key": "k", "value": value, **more}


def written(path, events):
    path.write_text("".join(json.dumps(e) + "\n" for e in events), encoding="utf-8")
    return path


@pytest.fixture
def judge(tmp_path):
    """judge(history, accepted, frontier, *arguments) -> (exit code, stdout, stderr)."""

    def run(history, accepted, frontier, *arguments):
        paths = []
        for end, given in (("history", history), ("accepted", accepted)):
            path = tmp_path / f"{end}.jsonl"
            path.write_bytes(given) if isinstance(given, bytes) else written(path, given)
            paths.append(f"--{end}={path}")
        out, err = io.StringIO(), io.StringIO()
        try:
            call_command("judge", *paths, f"--frontier={frontier}", *arguments, stdout=out, stderr=err)
        except SystemExit as exit_:
            return exit_.code, out.getvalue(), err.getvalue()
        return 0, out.getvalue(), err.getvalue()

    return run


def lost(answer):
    return json.loads(answer[1])["sink_delta"]


def test_exactly_once_is_zero_and_says_so(judge):
    code, out, _ = judge([event(1), event(2)], [event(1), event(2)], 2)
    assert code == 0
    assert out.startswith("Exactly once at 2: all 2 events reached the sink, none of them twice.")


def test_owed_and_hazard_are_one(judge):
    code, out, _ = judge([event(1), event(2)], [event(1)], 2)
    assert (code, out.splitlines()[0]) == (
        1,
        "1 of 2 events up to 2 never reached the sink. Nothing was doubled.",
    )
    code, out, _ = judge([event(1)], [event(1), event(1)], 1)
    assert (code, out.splitlines()[0]) == (
        1,
        "Hazard at 1: 1 event was accepted more than once (1 copy too many).",
    )


def test_an_acknowledged_omission_stays_lost_and_is_listed_apart(judge, tmp_path):
    omissions = tmp_path / "omissions.jsonl"
    omissions.write_text("2\n")
    code, out, _ = judge([event(1), event(2)], [event(1)], 2, f"--omissions={omissions}")
    assert code == 1
    assert out.startswith("1 of 2 events up to 2 never reached the sink. It was acknowledged; nothing else is owed.")
    code, out, _ = judge([event(1), event(2)], [event(1)], 2, f"--omissions={omissions}", "--json")
    answer = json.loads(out)
    assert (answer["sink_delta"], answer["redrive_batch"], answer["acknowledged"]) == ([2], [], [2])


def test_log_positions_are_compared_as_numbers_whatever_their_spelling(judge):
    history = [event("FF/FFFFFFFF"), event("100/0"), event("9/FFFFFF00"), event("A/10")]
    history = [history[2], history[3], history[0], history[1]]
    accepted = [event(42949672704), event("a/00000010"), event("ff/ffffffff")]
    answer = judge(history, accepted, "100/0", "--json")
    assert lost(answer) == ["100/0"]
    assert json.loads(answer[1])["coordinates_ascending"] is True
    assert lost(judge(history, accepted, "FF/FFFFFFFF", "--json")) == []


def test_unsigned_keys_turned_negative_meet_where_declared(judge):
    source = [event(n) for n in (5, 9223372036854775807, 9223372036854775808, 18446744073709551615)]
    sink = [event(n) for n in (5, 9223372036854775807, -1)]
    code, out, _ = judge(source, sink, 18446744073709551615, "--spelling=unsigned", "--json")
    answer = json.loads(out)
    assert code == 1
    assert answer["sink_delta"] == [9223372036854775808]
    assert answer["hazard_free"] is True
    code, _, err = judge(source, sink, 18446744073709551615)
    assert code == 2
    assert "sign is ambiguous" in err
    code, _, err = judge([event(-7), event(0)], [event(-7), event(0)], 0)
    assert code == 0


def test_altered_and_unrepresentable_contents_are_told_apart(judge):
    source = [event(1, "a\0b"), event(2, "ok"), event(3, "\ud83d"), event(4, "café 🚀")]
    sink = [event(1, "ab"), event(2, "ok"), event(4, "caf\u00e9 \U0001f680")]
    code, out, _ = judge(source, sink, 4, "--json")
    answer = json.loads(out)
    assert code == 1
    assert answer["sink_delta"] == [1, 3]
    assert answer["keyed_sink_delta"] == [3]
    assert answer["premature"] == [0]
    _, report, _ = judge(source, sink, 4)
    assert "record entry 0: altered" in report
    assert "1 of the missing is altered at the sink" in report and "no fire can deliver it" in report


def test_a_torn_record_is_unknown_never_clean_and_says_what_was_read(judge):
    """RC-36: the exit status differs from a clean read's."""
    whole = (json.dumps(event(1)) + "\n" + json.dumps(event(2)) + "\n").encode()
    code, out, _ = judge(whole, whole + b'{"coordinate": 3, "op"', 2)
    assert code == 3
    assert out.startswith("Unknown at 2.")
    assert "line 3, byte" in out
    assert "covers the 2 records that were read" in out
    code, out, err = judge(whole + b"\0" * 64 + json.dumps(event(3)).encode() + b"\n", whole, 2, "--json")
    assert code == 3
    assert json.loads(out)["sink_delta"] == []
    assert "NUL run" in err


def test_a_journal_that_ends_below_the_frontier_judges_nothing(judge, tmp_path):
    journal = written(tmp_path / "journal.jsonl", [event(1)])
    code, out, _ = judge([event(2), event(3)], [event(1), event(2), event(3)], 3, f"--journal={journal}", "--floor=2")
    assert code == 3
    assert "The journal does not reach 3" in out


def test_below_a_floor_without_a_journal_nothing_is_called_premature_or_complete(judge):
    code, out, _ = judge([event(5), event(6)], [event(1), event(5), event(6)], 6, "--floor=5")
    assert code == 3
    assert "1 accepted entry below the floor" in out
    assert "The journal grade is unknown" in out
    code, out, _ = judge([event(5), event(6)], [event(5), event(6)], 6, "--floor=5")
    assert code == 3
    assert "Complete at 6 in the retained grade" in out
    code, _, _ = judge([event(5), event(6)], [event(5)], 6, "--floor=5")
    assert code == 1


@pytest.mark.parametrize(
    ("history", "arguments", "says"),
    [
        ([event(None)], (), "coordinate is null"),
        ([event("A/1/2")], (), "not a coordinate"),
        ([event(1)], ("--spelling=pg_lsn", "--floor=G/1"), "not a coordinate"),
        ([event(1), event(2, lane="b")], (), "one lane"),
        ([event(1, lane="a"), event(2, lane="b")], (), "lanes"),
        (b'{"coordinate":1,"op":"insert","key":"k","value":1,"key":"j"}\n', (), "repeated"),
        ([event(1)], ("--journal=/nowhere/journal.jsonl",), "cannot be opened"),
        ([event(1)], ("--base=/nowhere/base.json",), "cannot be opened"),
    ],
)
def test_bad_input_is_two_and_names_the_field(judge, history, arguments, says):
    code, out, err = judge(history, [event(1)], 1, *arguments)
    assert code == 2
    assert says in err
    assert not out
    code, out, _ = judge(history, [event(1)], 1, *arguments, "--json")
    assert code == 2
    assert json.loads(out)["error"]["code"]


def test_a_frontier_is_spelled_as_the_files_are(judge):
    assert judge([event("A/10")], [event("A/10")], "A/1x")[0] == 2
    assert judge([event(7)], [event(7)], "7001:42")[0] == 2


def test_usage_errors_are_told_from_verdicts():
    with pytest.raises(CommandError):
        call_command("judge", "--history=x", "--accepted=y")
    with pytest.raises(CommandError):
        call_command("judge", "--history=x", "--accepted=y", "--frontier=1", "--scope=a", "--scope-file=b")


def test_scope_names_the_keys_owed_and_an_empty_one_owes_nothing(judge):
    history = [event(1), event(2, key="a")]
    assert lost(judge(history, [], 2, "--scope=a", "--json")) == [2]
    assert lost(judge(history, [], 2, "--scope=", "--json")) == []
    assert lost(judge(history, [], 2, "--json")) == [1, 2]


def test_numbers_are_printed_as_they_were_written(judge):
    raw = b'{"coordinate":1,"op":"insert","key":"k","value":{"n":12345678901234567890,"d":0.1234567890123456789}}\n'
    _, out, _ = judge(raw, raw * 2, 1, "--json")
    assert '"n": 12345678901234567890, "d": 0.1234567890123456789' in out


def test_images_are_compared_only_where_delivered_is_given(judge, tmp_path):
    delivered = written(tmp_path / "delivered.jsonl", [event(1, 7)])
    base = tmp_path / "base.json"
    base.write_text('{"other": 1}')
    history = [event(1, 7), event(2, 9)]
    code, out, _ = judge(history, history, 2, f"--delivered={delivered}", f"--base={base}", "--json")
    assert (code, json.loads(out)["mismatched_keys"]) == (0, ["k"])
    code, out, _ = judge(history, history, 2)
    assert "Mismatch" not in out
    pairs = [event("7:1"), event("7:2")]
    written(tmp_path / "delivered.jsonl", pairs)
    code, out, _ = judge(pairs, pairs, "7:2", f"--delivered={delivered}")
    assert code == 3
    assert "The image is unknown" in out


def test_the_command_alone_needs_no_database_no_broker_and_no_jvm(tmp_path):
    paths = [written(tmp_path / f"{end}.jsonl", [event(1)]) for end in ("history", "accepted")]
    kept = {
        name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL", "SPARK_REMOTE")
    }
    arguments = [sys.executable, "manage.py", "judge", "--history", paths[0], "--accepted", paths[1], "--frontier", "1"]
    program = subprocess.run(arguments, cwd=ROOT, env={**kept, "JAVA_HOME": "/nowhere"}, capture_output=True, text=True)
    assert (program.returncode, program.stderr) == (0, "")
    assert program.stdout.startswith("Exactly once at 1")
    torn = subprocess.run([*arguments[:-1], "A/"], cwd=ROOT, env=kept, capture_output=True, text=True)
    assert torn.returncode == 2
    assert subprocess.run(arguments[:-2], cwd=ROOT, env=kept, capture_output=True, text=True).returncode == 2


def test_t4_nothing_judged_is_unknown(judge):
    code, out, _ = judge(b"", b"", 5)
    assert code == 3 and "Nothing was judged at 5" in out
    code, out, _ = judge([event(7)], [event(7)], 5)
    assert code == 3 and "Nothing was judged at 5" in out


def test_t4_a_frontier_beyond_the_history_is_said_and_is_no_success(judge):
    code, out, _ = judge([event(1)], [event(1)], 10**9)
    assert code == 3 and "The history ends at 1: nothing shows what was committed from there to 1000000000." in out
    assert judge([event(1)], [event(1)], 1)[0] == 0
    assert judge([event(1)], [], 10**9)[0] == 1
