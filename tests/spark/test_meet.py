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
    answers = []
    for engine in ("arrow", "spark"):
        out, err = io.StringIO(), io.StringIO()
        with pytest.raises(SystemExit) as exit_:
            call_command("judge", *arguments, f"--engine={engine}", stdout=out, stderr=err)
        answers.append((exit_.value.code, json.loads(out.getvalue()), err.getvalue()))
    assert answers[0] == answers[1]
    assert answers[0][0] == 1
