"""The cogrouped way to meet, beside the kernel alone: the same verdict over many blocks, and through `judge`."""

from __future__ import annotations

import io
import json
from dataclasses import asdict, replace

import numpy as np
import pyarrow as pa
import pytest
from django.core.management import call_command

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import BadInput
from workers.evidence import schemas
from workers.evidence.kernel import LaneQuestion, fold, judge_block
from workers.spark.meet import meet
from workers.spark.session import session_get

pytestmark = pytest.mark.spark

ORDER = [(name, "ascending") for name in ("finding", "position", "ordinal", "entry", "journal_entry")]


def side(positions, schema, contents, head=None):
    count = len(positions)
    columns = {
        "lane": pa.repeat(pa.scalar("x"), count),
        "position": pa.array(positions, pa.int64()),
        "ordinal": pa.array(np.zeros(count, np.int64)),
        "entry": pa.array(np.arange(count)),
        "key": pa.repeat(pa.scalar("k"), count),
        "payload_digest": pa.array([int(c).to_bytes(32, "big") for c in contents], pa.binary(32)),
        "head_position": pa.array(np.full(count, head if head is not None else 0), mask=np.full(count, head is None)),
        "head_ordinal": pa.array(np.zeros(count, np.int64), mask=np.full(count, head is None)),
    }
    return pa.table([columns.get(f.name, pa.nulls(count, f.type)) for f in schema], schema=schema)


def damaged(rows):
    """A history and a record with losses, repeats, alterations, and entries far from everything committed."""
    chance = np.random.default_rng(7)
    positions = np.unique(chance.integers(-(2**62), 2**62, rows))
    contents = chance.integers(0, 2**40, len(positions))
    kept = chance.random(len(positions)) > 0.01
    altered = np.where(chance.random(len(positions)) < 0.01, contents + 1, contents)
    far = np.array([2**63 - 1, -(2**63)])
    accepted = np.concatenate([positions[kept], positions[:20], far])
    held = np.concatenate([altered[kept], contents[:20], [1, 2]])
    return side(positions, schemas.HISTORY, contents), side(accepted, schemas.ACCEPTED, held), positions


def test_many_blocks_fold_to_the_verdict_of_the_kernel_alone():
    history, accepted, positions = damaged(5000)
    question = LaneQuestion("x", Coordinate(int(positions[4000])), floor=Coordinate(int(positions[100])))
    whole = judge_block(replace(question, journal_head=Coordinate(int(positions[-1]))), history, accepted)
    session = session_get()
    sides = session.createDataFrame(history), session.createDataFrame(accepted)
    met = meet({"x": question}, *sides, block_rows=1000)
    findings = met.findings.toArrow().cast(schemas.FINDING)
    met.release()
    assert asdict(met.counts["x"]) == asdict(fold([whole.counts]))
    assert findings.sort_by(ORDER).equals(whole.findings.sort_by(ORDER))


def test_lanes_nobody_asked_about_are_named_and_empty_ones_answer():
    history, accepted, _ = damaged(50)
    session = session_get()
    question = LaneQuestion("y", Coordinate(0))
    met = meet({"y": question}, session.createDataFrame(history), session.createDataFrame(accepted))
    assert met.unasked == {"x": history.num_rows + accepted.num_rows}
    assert met.counts["y"].history_rows == 0
    met.release()


def test_an_error_in_a_task_is_raised_as_what_it_is():
    history, accepted, _ = damaged(50)
    broken = history.set_column(
        history.column_names.index("payload_digest"), "payload_digest", pa.nulls(history.num_rows, schemas.DIGEST)
    )
    session = session_get()
    question = LaneQuestion("x", Coordinate(0))
    with pytest.raises(BadInput, match="payload_digest"):
        meet({"x": question}, session.createDataFrame(broken), session.createDataFrame(accepted))


def event(coordinate, **more):
    return {"coordinate": coordinate, "op": "insert", "value": 1, "key": f"k{coordinate % 3}", **more}


def test_judge_answers_alike_with_both_engines(tmp_path):
    history = [event(n) for n in range(1, 200)]
    sides = {
        "history": history,
        "journal": [event(-1), *history],
        "accepted": [event(n, head=n) for n in range(1, 200) if n % 7] + [event(4), event(500)],
    }
    arguments = ["--frontier=150", "--scope=k0,k1", "--floor=20", "--json"]
    for end, events in sides.items():
        path = tmp_path / f"{end}.jsonl"
        path.write_text("".join(json.dumps(e) + "\n" for e in events))
        arguments.append(f"--{end}={path}")
    answers = answers_of(arguments)
    assert answers["arrow"] == answers["spark"]
    assert answers["arrow"][0] == 1


def answers_of(arguments):
    """By engine: exit code, answer, and what it rests on."""
    answers = {}
    for engine in ("arrow", "spark"):
        out, err = io.StringIO(), io.StringIO()
        with pytest.raises(SystemExit) as exit_:
            call_command("judge", *arguments, f"--engine={engine}", stdout=out, stderr=err)
        answers[engine] = (exit_.value.code, json.loads(out.getvalue()), err.getvalue())
    return answers


@pytest.mark.parametrize("has_contents", [True, False])
def test_judge_by_event_id_answers_alike_with_both_engines(tmp_path, has_contents):
    """Entries in an order and at coordinates of the sink's own; two lost, one doubled, one that no event has the id of."""
    history = [event(n, event_id=f"e{n}", lane="ab"[n % 2]) for n in range(1, 60)]
    entries = [{**event(n), "coordinate": 500 - n, "event_id": f"e{n}"} for n in [*range(1, 60), 3] if n not in (7, 8)]
    entries.append(event(9, event_id="x"))
    if not has_contents:
        entries = [{"event_id": entry["event_id"]} for entry in entries]
    arguments = ["--identity=event_id", "--frontier=a=50", "--frontier=b=end", "--scope=k0,k1,k2", "--json"]
    for end, rows in (("history", history), ("accepted", entries)):
        path = tmp_path / f"{end}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        arguments.append(f"--{end}={path}")
    answers = answers_of(arguments)
    assert answers["arrow"] == answers["spark"]
    lanes = answers["spark"][1]["lanes"]
    assert [lanes[lane]["sink_delta"] for lane in "ab"] == [[8], [7]]


def test_values_the_log_did_not_hold_are_passed_over_by_both_engines(tmp_path):
    unknown = "__debezium_unavailable_value"
    history = [
        {"op": "u", "before": None, "after": {"id": n, "text": unknown if n == 2 else "t"}, "source": {"lsn": n}}
        for n in (1, 2, 3)
    ]
    entries = [{"coordinate": n, "op": "update", "key": str(n), "value": {"id": n, "text": "t"}} for n in (1, 2)]
    arguments = ["--frontier=end", "--json"]
    for end, rows in (("history", history), ("accepted", entries)):
        path = tmp_path / f"{end}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        arguments.append(f"--{end}={path}")
    answers = answers_of(arguments)
    assert answers["arrow"] == answers["spark"]
    assert answers["spark"][1]["sink_delta"] == [3] and answers["spark"][1]["premature"] == []
