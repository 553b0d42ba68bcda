"""A dead-letter export against real ends: what each of its events is now, and what happens to those acknowledged."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.utils import timezone

from recovery_api.models import OmissionPreview
from recovery_api.selectors.omissions import omission_list
from recovery_api.services.omission_previews import export_preview, preview_confirm, preview_says
from tests.integration.recovery.world import World, run


def look_up(world: World, text: str) -> OmissionPreview:
    preview, intent = export_preview(world.pipeline, text, actor="ada", now=timezone.now(), wake=False)
    run(intent)
    preview.refresh_from_db()
    return preview


def event_id(world: World, key: str) -> str:
    return str(world.batch([key]).to_pylist()[0]["event_id"])


def test_each_line_of_an_export_is_told_what_it_is(world: World) -> None:
    world.commit(["a", "b", "c", "d", "same1", "same2"])
    with psycopg.connect(world.source_dsn) as connection:
        connection.execute("UPDATE outbox SET event_id = 'same' WHERE \"key\" LIKE 'same%'")
    world.deliver(["a", "same1", "same2"])
    world.audit()
    world.commit(["late"])
    place = world.coordinate
    transaction, number = place("b").split(":")
    lines = [
        "coordinate,event_id,topic",
        f"{place('a')},,x",
        f"{place('b')},,x",
        f",{event_id(world, 'b')},x",
        f",{event_id(world, 'c')},x",
        f"{place('d')},nobody,x",
        f"{transaction}:{int(number) + 1000},,x",
        f"{place('late')},,x",
        ",same,x",
        ",gone,x",
        "x,,x",
    ]
    preview = look_up(world, "\n".join(lines))
    assert preview.counts == {
        "owed": "2",
        "accepted": "1",
        "never committed": "1",
        "several events": "1",
        "other event id": "1",
        "above f": "2",
    }
    assert preview.asked["same_event_lines"] == ["4"] and preview.asked["unknown_columns"] == ["topic"]
    says = preview_says(preview)
    assert "2 events would be acknowledged." in says and "1 is accepted: nothing to acknowledge." in says
    assert "10 lines were read: 9 recognised, 0 ignored (0 name an event again), 1 rejected." in says
    done = preview_confirm(world.pipeline, preview.pk, reason="poison", actor="ada", now=timezone.now())
    assert done == 2
    audit = world.audit()
    assert (audit.status, audit.lost_count, audit.acknowledged_count) == ("owed", 4, 2)
    plan = world.plan()
    assert plan.batch["acknowledged"] == "2" and plan.batch_count == 2


def test_what_was_acknowledged_and_is_accepted_all_the_same_is_shown(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.commit(["a", "b"])
    world.deliver(["b"])
    world.audit()
    call_command("omissions", "preview", world.pipeline.name)
    assert "1 event would be acknowledged." in capsys.readouterr().out
    preview = OmissionPreview.objects.get()
    call_command("omissions", "confirm", world.pipeline.name, str(preview.pk), "--reason", "poison")
    assert world.audit().status == "acknowledged" and omission_list(world.pipeline).get().accepted_seen_at is None
    world.deliver(["a"])
    audit = world.audit()
    assert (audit.status, audit.lost_count) == ("exactly_once", 0)
    assert omission_list(world.pipeline).get().accepted_seen_at == audit.record_read_at
    capsys.readouterr()
    call_command("omissions", "list", world.pipeline.name)
    assert "accepted all the same (seen" in capsys.readouterr().out


def test_an_export_is_imported_by_command_in_this_process(
    world: World, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    world.commit(["a", "b"])
    world.audit()
    export = tmp_path / "dead.jsonl"
    export.write_text(f'{{"id": "{world.coordinate("a")}"}}\n\n{{"id": "{world.coordinate("a")}"}}\nnothing\n')
    call_command("omissions", "import", world.pipeline.name, str(export), "--here")
    said = capsys.readouterr().out
    assert "1 event would be acknowledged." in said and "Line 4 rejected: It is not JSON." in said
    assert "Lines ignored: 2, 3." in said and "omissions confirm" in said


def test_an_event_committed_below_f_after_the_audit_is_told_apart(world: World) -> None:
    """Nothing shows that it was accepted: it is not called so, and nobody acknowledges it unseen."""
    world.commit(["a"])
    world.audit()
    with psycopg.connect(world.source_dsn) as connection:
        row = connection.execute("SELECT tx::text, id FROM outbox").fetchone()
        assert row is not None
        connection.execute(
            'INSERT INTO outbox (tx, id, "key", content) OVERRIDING SYSTEM VALUE VALUES (%s, %s, %s, %s)',
            [row[0], row[1] - 1, "older", "{}"],
        )
    preview = look_up(world, f"id\n{world.coordinate('older')}\n")
    assert preview.counts == {"undecided": "1"}
