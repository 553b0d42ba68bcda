"""The conformance cases of verdicts through `manage.py judge`, each as files of all three kinds."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.management import call_command

from tests.contract.verdict_cases import cases_read
from workers.evidence.canonical import json_written

pytestmark = pytest.mark.slow

FILES = ["verdicts.json", "verdicts_random.json"]


def jsonl_write(path, events):
    path.write_text("".join(json_written(event) + "\n" for event in events), encoding="utf-8")


def csv_write(path, events, columns):
    with path.open("w", newline="", encoding="utf-8") as file:
        file.write(",".join(columns) + "\n")
        for event in events:
            cells = {**event, "value": json_written(event["value"])}
            quoted = ['"' + str(cells[name]).replace('"', '""') + '"' for name in columns]
            nulls = ["" if cells[name] is None else cell for name, cell in zip(columns, quoted, strict=True)]
            file.write(",".join(nulls) + "\n")


def parquet_write(path, events, columns):
    types = {"coordinate": pa.int64(), "generation": pa.int64(), "head": pa.int64()}
    rows = [{**event, "value": json_written(event["value"])} for event in events]
    schema = pa.schema([(name, types.get(name, pa.string())) for name in columns])
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)


def file_write(folder, end, events, kind):
    path = folder / f"{end}.{kind}"
    columns = ["coordinate", "op", "key", "value"] + (["generation", "head"] if end == "accepted" else [])
    if kind == "jsonl":
        jsonl_write(path, events)
    else:
        {"csv": csv_write, "parquet": parquet_write}[kind](path, events, columns)
    return str(path)


def judged(case, folder, kind):
    """(exit code, the printed object)."""
    arguments = ["--json", f"--frontier={case['frontier']}"]
    for end in ("history", "accepted", "journal", "delivered"):
        if case.get(end) is not None:
            arguments.append(f"--{end}={file_write(folder, end, case[end], kind)}")
    if case["floor"] is not None:
        arguments.append(f"--floor={case['floor']}")
    if case["scope"] is not None:
        (folder / "scope.json").write_text(json.dumps(case["scope"]), encoding="utf-8")
        arguments.append(f"--scope-file={folder / 'scope.json'}")
    (folder / "omissions.json").write_text(json.dumps(case["acknowledged_omissions"]), encoding="utf-8")
    (folder / "base.json").write_text(json_written(case["base"]), encoding="utf-8")
    arguments += [f"--omissions={folder / 'omissions.json'}", f"--base={folder / 'base.json'}"]
    out = io.StringIO()
    try:
        call_command("judge", *arguments, stdout=out, stderr=io.StringIO())
    except SystemExit as exit_:
        return exit_.code, verdict_of(out)
    return 0, verdict_of(out)


def verdict_of(out):
    answer = json.loads(out.getvalue())
    del answer["read"]  # where every line went, beside the verdict
    return answer


def exit_expected(case):
    """Judge's exit code by the definitions: a short journal, a floor with nothing known below it, a history that ends
    before the frontier, and a frontier at which nothing is owed, are no success."""
    expect, frontier, floor = case["expect"], case["frontier"], case["floor"]
    committed = [event["coordinate"] for event in case["journal"] if case["journal"]] if case["journal"] else []
    held = [event["coordinate"] for event in case["history"]]
    if case["journal"] is not None and max(committed, default=frontier - 1) < frontier:
        return 3
    if (
        case["journal"] is None
        and floor is not None
        and min(held, default=floor) < floor
        and max(held) < min(floor, frontier)
    ):
        return 3
    if case["journal"] is None and floor is not None and min(held, default=floor) >= floor:
        below = {place for place in expect["premature"] if case["accepted"][place]["coordinate"] < floor}
        is_certain = set(expect["premature"]) - below or expect["duplicates"] or expect["redrive_batch"]
        if not is_certain and not any(head_is_wrong(case, case["accepted"][place]) for place in below):
            return 3
        return 1
    if not (expect["retained"]["exactly_once"] and expect["journal"]["exactly_once"]):
        return 1
    scope, authority = case["scope"], case["journal"] or case["history"]
    owed = [
        event for event in authority if event["coordinate"] <= frontier and (scope is None or event["key"] in scope)
    ]
    return 0 if owed and max(event["coordinate"] for event in authority) >= frontier else 3


def head_is_wrong(case, entry):
    top = max((event["coordinate"] for event in case["history"]), default=None)
    head = entry["head"]
    return head is not None and (head < entry["coordinate"] or (top is not None and head > top))


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("name", FILES)
def test_judge_answers_every_case(name, kind, tmp_path):
    failed = []
    for case in cases_read(name):
        code, answer = judged(case, tmp_path, kind)
        if answer != case["expect"] or code != exit_expected(case):
            failed.append(
                (case["id"], code, {k: answer.get(k) for k, v in case["expect"].items() if answer.get(k) != v})
            )
        for path in tmp_path.iterdir():
            path.unlink()
    assert not failed
