"""One row a word: everything that pages, documents and constraints list of a word stands in its row."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from recovery_api.domain.events import OF_THE_REGISTRY, REFUSALS, EventKind
from recovery_api.domain.evidence_classes import ORDER, EvidenceClass, classes_as_rows, classes_counted, kept_back
from recovery_api.domain.findings import Cause, FindingWord, finding_means
from recovery_api.domain.looks import LOOKS, TONES, UNSURE, look_of, tone_of
from recovery_api.domain.outcomes import OUTCOMES, Status
from recovery_api.domain.work import QUEUES, IntentAction, Urgency
from workers.evidence.schemas import FINDING

PROJECT = Path(__file__).parents[2]
TONED = {"good", "given", "warn", "bad", "unsure", "busy", "calm", "quiet"}


@pytest.mark.parametrize("action", IntentAction)
def test_every_action_has_a_queue_and_a_place_in_the_order(action: IntentAction) -> None:
    assert action.queue in QUEUES and action.urgency in list(Urgency) and action.attempts > 1
    assert action.label and action.means.endswith(".")


def test_only_what_moves_a_recovery_is_urgent_and_never_withdrawn() -> None:
    assert {action for action in IntentAction if action.urgency is Urgency.CLAIM} == {
        action for action in IntentAction if action.is_of_a_recovery
    }


def test_every_step_says_what_happened() -> None:
    assert all(kind.means.endswith(".") for kind in EventKind)
    assert EventKind.ACCESS_DENIED in REFUSALS and EventKind.END_CHANGED in OF_THE_REGISTRY
    assert not REFUSALS & set(OF_THE_REGISTRY)


def test_every_finding_and_cause_says_what_it_means_and_how_it_is_drawn() -> None:
    assert {row.tone for row in FindingWord} <= TONED and all(row.means and row.sign for row in FindingWord)
    assert all(finding_means("premature", cause, False, False) == cause.means for cause in Cause)
    assert finding_means("later word", "", False, False) == ""
    assert "finding" in FINDING.names


def test_the_kernel_speaks_the_words_of_the_table() -> None:
    """The kernel runs on executors in Arrow; its literals are these words and no other."""
    kernel = PROJECT / "workers" / "evidence" / "kernel"
    said = "\n".join(path.read_text(encoding="utf-8") for path in kernel.glob("*.py"))
    for word in (*FindingWord, *Cause):
        assert re.search(rf"[\"']{re.escape(word)}[\"']", said), word


def test_green_is_only_what_the_table_of_outcomes_calls_so() -> None:
    assert set(TONES) == {*Status, None}
    assert {look.tone for look in LOOKS.values()} <= TONED
    for word, row in OUTCOMES.items():
        assert (look_of(word).tone == "good") == row.is_green, word


def test_a_status_that_has_no_row_is_drawn_unsure_and_never_as_good() -> None:
    """A later version's word, in a row that this one shows: on the rail of a lane it would colour how far was judged."""
    later: Any = "exactly once, and then some"
    assert later not in TONES
    assert tone_of(later) == UNSURE == tone_of(Status.UNKNOWN)
    assert all(tone_of(status) == TONES[status] for status in Status)


def test_only_what_is_provably_missing_is_sent() -> None:
    assert [row for row in EvidenceClass if row.is_sent] == [EvidenceClass.PROVABLY_MISSING]
    assert set(ORDER) == set(EvidenceClass) and ORDER[-1] is EvidenceClass.PROVABLY_MISSING
    assert all(row.means.endswith(".") for row in EvidenceClass)


def test_a_plan_shows_every_class_it_can_tell_and_the_others_where_there_are_any() -> None:
    shown = classes_counted({EvidenceClass.TRIMMED: 2, EvidenceClass.AMBIGUOUS: 1})
    assert shown == {
        "provably missing": 0,
        "unknowable": 0,
        "acknowledged": 0,
        "altered at the sink": 0,
        "not representable at the sink": 0,
        "trimmed": 2,
        "ambiguous": 1,
    }
    assert kept_back({"provably missing": "3", "acknowledged": "4", "trimmed": "2", "unknowable": "1"}) == 3
    rows = classes_as_rows({"of a later version": "1", "provably missing": "3"})
    assert [(row["evidence_class"], row["is_sent"]) for row in rows] == [
        ("provably missing", True),
        ("of a later version", False),
    ]
