"""The conformance cases of verdicts, through the kernel alone and through the cogrouped Spark path."""

from __future__ import annotations

import pytest

from tests.contract import verdict_cases as vc
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
