"""The conditions of a plan that say who else may write, and whether effects keep their order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from recovery_api.domain.capabilities import APART, APART_REMEDY, Archetype, Capability, capability_joined
from recovery_api.domain.conditions import (
    Condition,
    LaterKeys,
    PlanEvidence,
    UndisciplinedPath,
    conditions_judge,
    conditions_refusal,
    warnings_says,
)

FENCED = Capability(Archetype.FENCED, True, True, True, True, True)
CLEAN = PlanEvidence(
    premature_count=0,
    duplicate_count=0,
    altered_count=0,
    coordinates_ascending=True,
    frontier_is_safe=True,
    safe_frontier_says="No transaction is open below it.",
    safe_frontier_weakness=None,
    lost_below_floor_count=0,
    unknown_below_floor_count=0,
    unrepresentable_count=0,
    stranded_count=0,
    record_is_complete=True,
    batch_count=3,
)
SUPERUSER: UndisciplinedPath = ("superuser", "root", "root is a superuser: it can write anywhere")
OTHER: UndisciplinedPath = ("superuser", "admin", "admin is a superuser: it can write anywhere")
GRANT: UndisciplinedPath = ("privilege", "loader", "loader holds INSERT on fencepost.accepted")
GUARD: UndisciplinedPath = ("guard", None, "trigger rows_stay of fencepost.accepted is disabled")


def judged(name: str, evidence: PlanEvidence, capability: Capability = FENCED) -> Condition:
    (found,) = [condition for condition in conditions_judge(evidence, capability) if condition.name == name]
    return found


def test_clean_evidence_on_a_fenced_sink_holds_every_condition() -> None:
    assert [condition.name for condition in conditions_judge(CLEAN, FENCED) if not condition.holds] == []


def test_superusers_alone_are_one_sentence_of_weakness_and_no_alarm() -> None:
    owner: UndisciplinedPath = ("target owner", "root", "root holds INSERT on public.mail")
    found = judged("C1", replace(CLEAN, undisciplined_paths=[SUPERUSER, OTHER, owner]))
    assert found.holds is True
    assert "Weakness: " in found.says and "(admin, root)" in found.says
    assert "can write anywhere" not in found.says and "public.mail" not in found.says


def test_each_undisciplined_path_is_named_and_blocks_nothing() -> None:
    evidence = replace(CLEAN, undisciplined_paths=[SUPERUSER, GRANT, GUARD])
    found = judged("C1", evidence)
    assert found.holds is False
    assert found.says.startswith("Others can write past the fence (C1): ")
    assert GRANT[2] in found.says and GUARD[2] in found.says and "(root)" in found.says
    assert conditions_refusal(conditions_judge(evidence, FENCED)) is None


def test_r7_sink_that_lost_its_fence_says_why_and_blocks() -> None:
    because = "Version 2 of the sink kit is installed; this Fencepost writes version 4. Upgrade it in place."
    sink = replace(FENCED, archetype=Archetype.QUERYABLE, has_fence=False, unfenced_because=because)
    found = judged("P2", CLEAN, sink)
    assert (found.holds, found.blocks) == (None, True)
    assert found.says.startswith(because)


def test_later_accepted_keys_are_counted_whole_and_named_as_far_as_given() -> None:
    evidence = replace(CLEAN, later=LaterKeys(7, ("a", 'b "quoted"')))
    found = judged("order", evidence)
    assert found.holds is False
    assert "7 keys" in found.says and '"a", "b \\"quoted\\"" and 5 more' in found.says
    assert "--attest later-events-confirmed" in found.remedy
    assert conditions_refusal(conditions_judge(evidence, FENCED)) is None


def test_an_ordered_effect_without_later_events_keeps_its_order() -> None:
    assert judged("order", replace(CLEAN, later=LaterKeys())).holds is True


def test_a_sink_without_a_fence_is_refused_without_promising_what_nothing_lifts() -> None:
    unfenced = replace(FENCED, archetype=Archetype.QUERYABLE, has_fence=False)
    found = conditions_refusal(conditions_judge(CLEAN, unfenced))
    assert found is not None and found.name == "P2" and found.holds is None
    assert "sink kit" in found.remedy and "record that" not in found.remedy


def test_events_that_retention_dropped_undelivered_are_said_before_an_approval() -> None:
    found = judged("floor", replace(CLEAN, lost_below_floor_count=2))
    assert (found.holds, found.blocks) == (False, False)
    assert found.says.startswith("2 events the source no longer holds were never accepted.")
    said = warnings_says(conditions_judge(replace(CLEAN, lost_below_floor_count=2), FENCED))
    assert "the source dropped events that never reached the sink (floor)" in said
    unknown = judged("floor", replace(CLEAN, unknown_below_floor_count=3))
    assert unknown.holds is None and unknown.warning == "nothing shows what lay below the oldest row"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("P3", {"frontier_is_safe": False}),
        ("P4", {"coordinates_ascending": False}),
        ("P4", {"coordinates_ascending": None}),
        ("record", {"record_is_complete": False}),
    ],
)
def test_what_forbids_applying_is_named_by_its_condition(name: str, change: dict[str, Any]) -> None:
    refusal = conditions_refusal(conditions_judge(replace(CLEAN, **change), FENCED))
    assert refusal is not None and refusal.name == name and refusal.remedy


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("P1", {"duplicate_count": 1}),
        ("P1", {"premature_count": 1}),
        ("P3", {"safe_frontier_weakness": "Grace."}),
        ("content", {"unrepresentable_count": 1}),
    ],
)
def test_what_does_not_forbid_applying_is_a_warning_and_never_held(name: str, change: dict[str, Any]) -> None:
    evidence = replace(CLEAN, **change)
    found = judged(name, evidence)
    assert not found.holds and not found.blocks and found.warning
    assert f"({name})" in warnings_says(conditions_judge(evidence, FENCED))


def test_a_row_that_is_only_a_mark_blocks_a_plan_before_anything_else() -> None:
    marks = replace(FENCED, archetype=Archetype.QUERYABLE, has_fence=False, mark_because="A row here is a mark.")
    refusal = conditions_refusal(conditions_judge(CLEAN, marks))
    assert refusal is not None and (refusal.name, refusal.says) == ("effect", "A row here is a mark.")
    assert not [one for one in conditions_judge(CLEAN, FENCED) if one.name == "effect"]


def test_a_delivery_apart_from_its_record_is_refused_and_told_what_to_do() -> None:
    marks = replace(
        FENCED, archetype=Archetype.QUERYABLE, has_fence=False, has_identity_key=False, mark_because="A mark."
    )
    pair = capability_joined(marks, FENCED)
    found = conditions_judge(CLEAN, pair)
    refusal = conditions_refusal(found)
    assert refusal is not None and (refusal.name, refusal.says, refusal.remedy) == ("P2", APART, APART_REMEDY)
    assert [one.name for one in found if one.blocks] == ["P2"]
    said = " ".join(f"{one.says} {one.remedy}" for one in found if one.name != "P2")
    for untrue in ("the fence and the claim protect", "no effect that needs", "sink kit", "A mark."):
        assert untrue not in said, untrue
