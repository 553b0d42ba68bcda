"""A plan counts every owed event in exactly one class, and sends only what is provably missing."""

from __future__ import annotations

from collections import Counter

import pytest
from django.core.management import call_command
from django.utils import timezone

from recovery_api.domain.evidence_classes import EvidenceClass, owed_count
from recovery_api.models import Finding, PlanState
from recovery_api.rows import plan_as_row
from recovery_api.services.omissions import omission_acknowledge
from tests.integration.recovery.world import World


def test_events_that_fit_several_classes_are_counted_in_the_first(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """Altered and acknowledged, unrepresentable and acknowledged: they were counted twice, and the sum was not what is lost."""
    world.use_json_column()
    for key, text in {
        "changed": '"a"',
        "nul": '"a\\u0000b"',
        "half": '"\\ud83d"',
        "ok": '"ok"',
        "other": '"b"',
    }.items():
        world.commit_text(key, text)
    for key in ("changed", "other"):
        world.sink().deliver(0, world.batch([key]).set_column(6, "content", [['"ab"']]))
    for key in ("changed", "half"):
        omission_acknowledge(world.pipeline, world.coordinate(key), reason="ticket", actor="ada", now=timezone.now())
    plan = world.plan()
    assert plan.state == PlanState.READY and plan.audit is not None
    assert {name: int(count) for name, count in plan.batch.items() if count != "0"} == {
        "provably missing": 1,
        "acknowledged": 2,
        "altered at the sink": 1,
        "not representable at the sink": 1,
    }
    assert owed_count(plan.batch) == plan.audit.lost_count == 5 and plan.batch_count == 1
    listed = Counter(
        Finding.objects.filter(plan=plan).exclude(evidence_class="").values_list("evidence_class", flat=True)
    )
    assert listed == {name: int(count) for name, count in plan.batch.items() if count != "0"}
    assert "Not sent: 2 acknowledged, 1 altered at the sink, 1 not representable at the sink." in plan.says
    rows = {row["evidence_class"]: row for row in plan_as_row(plan)["classes"]}
    assert {name for name, row in rows.items() if row["is_sent"]} == {EvidenceClass.PROVABLY_MISSING}
    with pytest.raises(SystemExit) as ended:
        call_command("plan", str(plan.id))
    said = capsys.readouterr().out
    assert ended.value.code == 1 and "altered at the sink: 1. The sink holds other content in their place." in said
