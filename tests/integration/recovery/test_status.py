"""What is claimed fits what is known: statuses, outcomes and certificates, from real ends to every face."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from django.utils import timezone

from dashboard.templatetags.incident import group_means
from recovery_api.domain.conditions import undisciplined_says
from recovery_api.management.commands.plan import plan_shown
from recovery_api.management.recoveries import recovery_shown
from recovery_api.models import Wanted
from recovery_api.selectors.fleet import pipeline_status
from recovery_api.selectors.fleet_pages import fleet_entries
from recovery_api.services.recoveries import recovery_want
from tests.integration.recovery.test_relay_cursor import CURSOR
from tests.integration.recovery.world import World, run, world_make

DRAWN = {"coordinate": ["id"], "coordinate_spelling": "bigint", "grace_seconds": 1}


@pytest.fixture
def world_drawn(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path) -> World:
    """Coordinates are drawn numbers, and nothing but a grace says which of them may still commit."""
    return world_make(database_factory, tmp_path, source_more=DRAWN)


def status_of(world: World) -> tuple[str, str]:
    """The word of the pipeline's page and of the overview, which are one."""
    found = pipeline_status(world.pipeline, timezone.now())
    (entry,) = fleet_entries(timezone.now())
    assert entry.word == found.status
    return str(found.status), found.says


def test_t5_an_assumed_ground_has_an_outcome_a_sentence_and_an_exit_code_of_its_own(world_drawn: World) -> None:
    world = world_drawn
    world.commit(["k0", "k1", "k2"])
    recovery = world.recover()
    verified = recovery.audits.get()
    assert (recovery.outcome, verified.status, verified.exit_code) == ("exactly_once_given",) * 2 + (4,)
    given = verified.givens[0]
    assert f"Exactly once at 3, given {given}: 3 delivered" in recovery.says
    assert f"Exactly once at 3, given {given}: all 3 events reached the sink" in verified.says
    assert recovery.certificate["verified"]["given"] == [given]
    assert recovery_shown(recovery).code == 4
    assert status_of(world)[0] == "exactly_once_given"
    assert recovery.plan.pins["promise"] == f"exactly once at f, given {given}, once verified"
    again = plan_shown(str(world.plan().id))
    assert again.code == 4 and f"Nothing to send at 3. Exactly once at 3, given {given}" in again.lines[2]


def test_t5_no_sentence_says_that_ids_cannot_come_where_only_a_grace_says_so(world_drawn: World) -> None:
    world = world_drawn
    world.commit(["k0"])
    with psycopg.connect(world.source_dsn) as connection:
        connection.execute("SELECT nextval(pg_get_serial_sequence('outbox', 'id'))")
    world.commit(["k1"])
    says = world.audit().says
    assert "1 id up to 3 has no row: rolled back, or still open" in says and "Harmless" not in says


def test_t10_what_a_plan_found_owed_stays_owed_when_its_recovery_stops(world: World) -> None:
    world.commit(["k0", "k1"])
    world.deliver(["k0", "k1"])
    assert world.audit().status == "exactly_once" and status_of(world)[0] == "exactly_once"
    earlier = world.coordinate("k1")
    world.commit(["k2", "k3", "k4"])
    plan = world.plan()
    assert plan.audit is not None and plan.audit.lost_count == 3
    recovery = world.request(world.approve(plan))
    recovery_want(recovery, Wanted.STOP, actor="ada", now=timezone.now(), reason="not now", wake=False)
    world.audit(earlier)  # a success further down takes nothing back
    word, says = status_of(world)
    assert word == "owed" and says.startswith(f"3 of 5 events up to {world.coordinate('k4')} never reached the sink.")
    world.recover()
    assert status_of(world)[0] == "exactly_once"


def test_t11_a_hazard_that_a_recovery_meets_is_the_pipelines_status_at_once(world: World) -> None:
    world.commit(["k0", "k1"])
    altered = world.batch(["k0"])
    world.sink().deliver(0, altered.set_column(altered.schema.get_field_index("content"), "content", [['{"n": 2}']]))
    recovery = world.recover()
    assert recovery.outcome == "incomplete_altered"
    word, says = status_of(world)
    assert word == "hazard" and "1 altered" in says


def test_t12_one_answer_for_one_coordinate(world: World) -> None:
    world.commit(["k0", "k1"])
    altered = world.batch(["k0"])
    world.sink().deliver(0, altered.set_column(altered.schema.get_field_index("content"), "content", [['{"n": 2}']]))
    audit = world.audit()
    lost = {group["is_altered"]: group_means(group) for group in audit.groups if group["finding"] == "lost"}
    assert "A recovery can send these." in lost[False] and "No recovery can deliver them." in lost[True]
    assert [group["count"] for group in audit.groups if group["finding"] == "lost"] == ["1", "1"]
    assert "1 of the missing is altered at the sink" in audit.says


def test_t17_what_can_pass_the_fence_is_one_sentence_everywhere(world_with_target: World) -> None:
    world = world_with_target
    with psycopg.connect(world.sink_dsn) as connection:
        connection.execute("GRANT INSERT ON mail TO PUBLIC")
    says = undisciplined_says(world.sink().undisciplined_paths())
    assert says is not None and says.startswith("Others can write past the fence (C1): ")
    world.commit(["k0"])
    recovery = world.recover()
    plan = recovery.plan
    (condition,) = [one for one in plan.conditions if one["name"] == "C1"]
    assert condition["holds"] is False and condition["says"].startswith(says)
    assert "Read one warning first: others can write past the fence (C1). It does not block." in plan.says
    for weaknesses in (
        plan.pins["weaknesses"],
        world.audit().weaknesses,
        pipeline_status(world.pipeline, timezone.now()).audit.weaknesses,  # type: ignore[union-attr]
        recovery.certificate["verified"]["not_provable"],
        world.sink().test().weaknesses,
    ):
        assert says in weaknesses


def test_t4_an_empty_source_is_unknown_not_clean(world: World) -> None:
    audit = world.audit()
    assert (audit.status, audit.exit_code) == ("unknown", 3)
    assert "Nothing was judged" in audit.says
    plan = world.plan()
    assert "Nothing was judged" in plan.says and plan_shown(str(plan.id)).code == 3


def test_t4_a_cursor_beyond_the_newest_event_is_said_and_is_no_success(world: World) -> None:
    world.commit(["k0", "k1"])
    world.deliver(["k0", "k1"])
    head = world.batch(["k1"]).to_pylist()[0]
    with psycopg.connect(world.source_dsn) as connection:
        connection.execute("CREATE TABLE relay_cursor (relay text, position bigint, ordinal bigint)")
        connection.execute("INSERT INTO relay_cursor VALUES ('letters', %s, 99)", [head["position"] + 9])
    source = world.pipeline.source
    source.options = {**source.options, **CURSOR}
    source.save()
    audit = world.audit()
    assert (audit.status, audit.exit_code) == ("unknown", 3) and "lies beyond the newest event" in audit.says
    world.source_retention("purges")
    assert "lies beyond" not in world.audit().says


def test_an_audit_of_a_plan_is_no_audit_intents_and_ends_no_work(world: World) -> None:
    world.commit(["k0"])
    plan = world.plan()
    assert plan.audit is not None and plan.audit.status == "owed" and plan.audit.listed_count == 1
    assert plan.intents.get().result["plan"] == str(plan.id)
    run(world.request(world.approve(plan)).intents.get())
    assert status_of(world)[0] == "exactly_once"
