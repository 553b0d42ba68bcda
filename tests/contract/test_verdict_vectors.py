"""The conformance cases of verdicts, through the kernel alone and through the cogrouped Spark path."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.contract import verdict_cases as vc
from workers.evidence import schemas
from workers.evidence.kernel import fold, judge_block

FILES = ["verdicts.json", "verdicts_random.json"]


@pytest.mark.parametrize("name", FILES)
def test_kernel_gives_the_verdict_of_every_case(name):
    cases = vc.cases_read(name)
    answers = []
    for case in cases:
        journal = None if case["journal"] is None else vc.history_of(case["journal"], "0")
        history, accepted = vc.history_of(case["history"], "0"), vc.accepted_of(case["accepted"], "0")
        block = judge_block(vc.question_of(case, "0"), history, accepted, journal)
        answers.append(vc.answer_of(case, fold([block.counts]), block.findings))
    assert not vc.failures(cases, answers)


@pytest.mark.spark
@pytest.mark.parametrize("name", FILES)
def test_cogrouped_spark_gives_the_verdict_of_every_case_as_lanes_of_one_job(name):
    from workers.spark.meet import meet
    from workers.spark.session import session_get

    cases = vc.cases_read(name)
    session = session_get()

    def frame(end, shape, schema):
        tables = [shape(case[end], case["id"]) for case in cases if case[end] is not None]
        return session.createDataFrame(pa.concat_tables([schema.empty_table(), *tables]))

    meeting = meet(
        {case["id"]: vc.question_of(case, case["id"]) for case in cases},
        frame("history", vc.history_of, schemas.HISTORY),
        frame("accepted", vc.accepted_of, schemas.ACCEPTED),
        frame("journal", vc.history_of, schemas.HISTORY),
        journal_lanes={case["id"] for case in cases if case["journal"] is not None},
    )
    findings = meeting.findings.toArrow().cast(schemas.FINDING)
    meeting.release()
    answers = [
        vc.answer_of(case, meeting.counts[case["id"]], findings.filter(pc.equal(findings["lane"], case["id"])))
        for case in cases
    ]
    assert not vc.failures(cases, answers)
    assert not meeting.unasked
