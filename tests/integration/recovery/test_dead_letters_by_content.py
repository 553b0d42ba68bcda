"""RC-57: a dead letter that names its event by key and content alone is shown as such, and acknowledged only by name."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.utils import timezone

from recovery_api.domain.errors import Refused
from recovery_api.models import Event, OmissionPreview, PreviewedOmission, RecoveryOutcome
from recovery_api.selectors.omissions import omission_list
from recovery_api.services.omission_previews import preview_confirm, preview_says
from recovery_api.services.omissions import omission_acknowledge, omissions_withdraw
from tests.integration.recovery.test_dead_letters import look_up
from tests.integration.recovery.world import World

OFFSETS = [f"o{number}" for number in range(10)]


@pytest.fixture
def skipped(world: World) -> World:
    """Ten events, of which 3, 5 and 8 never arrived."""
    for key in OFFSETS:
        world.commit([key], {"offset": key, "amount": 1.50})
    world.deliver([key for key in OFFSETS if key not in ("o3", "o5", "o8")])
    assert world.audit().lost_count == 3
    return world


def confirm(world: World, preview: OmissionPreview, **more: Any) -> int:
    return preview_confirm(world.pipeline, preview.pk, reason="poison", actor="r.k.", now=timezone.now(), **more)


def test_rc_57_what_names_an_event_is_shown_and_a_wildcard_is_no_omission(
    skipped: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world = skipped
    value = json.dumps({"amount": 1.5, "offset": "o5"})
    letters = [
        json.dumps({"coordinate": world.coordinate("o3"), "key": "o3", "errors": "boom"}),
        json.dumps({"key": "o5", "value": value}),
        json.dumps({"key": "o4", "value": {"offset": "o4", "amount": 1.5}}),
        json.dumps({"key": "o8", "value": {"offset": "another"}}),
    ]
    preview = look_up(world, "\n".join(letters))
    assert preview.counts == {"owed": "1", "owed by content": "1", "accepted": "1", "no such content": "1"}
    says = preview_says(preview)
    assert "1 is lost, and named by its key and content alone: acknowledged only where you say so." in says
    assert not PreviewedOmission.objects.exclude(payload="").exists(), "keys and contents go once they were looked up"
    assert confirm(world, preview) == 1
    assert world.audit().lost_count == 3 and world.plan().batch_count == 2, "5 and 8 are still owed"

    preview = look_up(world, letters[1])
    with pytest.raises(Refused, match="the export names the 1 lost event by key and content alone"):
        confirm(world, preview)
    call_command("omissions", "confirm", world.pipeline.name, str(preview.pk), "--with-content", "--reason", "poison")
    capsys.readouterr()
    call_command("omissions", "list", world.pipeline.name)
    listed = capsys.readouterr().out.splitlines()
    assert [line.endswith("named by key and content alone") for line in listed] == [False, True]
    assert "(1 named by key and content alone)" in Event.objects.filter(kind="omission acknowledged").latest("id").says

    assert world.plan().batch_count == 1, "a line in a log acknowledges nothing: 8 is owed"
    omission_acknowledge(world.pipeline, world.coordinate("o8"), reason="T-12", actor="r.k.", now=timezone.now())
    audit = world.audit()
    assert (audit.status, audit.lost_count, audit.acknowledged_count) == ("acknowledged", 3, 3)

    by_content = omission_list(world.pipeline).get(is_by_content=True)
    omissions_withdraw(world.pipeline, str(by_content.act), actor="r.k.", now=timezone.now())
    recovery = world.recover()
    assert (recovery.outcome, recovery.landed_count) == (RecoveryOutcome.COMPLETE_WITH_ACKNOWLEDGED, 1), recovery.says
    assert "o5" in world.accepted_keys() and "o3" not in world.accepted_keys()


def test_a_content_that_several_events_have_names_none_of_them(skipped: World) -> None:
    """One of them arrived: which one the letter was of nobody knows."""
    world = skipped
    world.commit(["o5"], {"offset": "o5", "amount": 1.50})
    world.audit()
    preview = look_up(world, '{"key": "o5", "payload": {"offset": "o5", "amount": 1.5}}')
    assert preview.counts == {"several alike": "1"}


def test_one_event_named_in_two_ways_is_counted_once_by_what_shows_more(skipped: World) -> None:
    world = skipped
    content = json.dumps({"offset": "o5", "amount": 1.5}).replace('"', '""')
    export = f'coordinate,key,content,op\n,o5,"{content}",insert\n{world.coordinate("o5")},,,\n,o3,"{content}",\n,o8,,upsert\n'
    preview = look_up(world, export)
    assert preview.counts == {"owed": "1", "no such content": "1"} and preview.asked["same_event_lines"] == ["2"]
    assert "has the operation 'upsert'" in preview.asked["rejected_lines"][0]["says"]


def test_contents_of_every_form_meet_what_was_committed(world: World) -> None:
    """None at all, JSON's null, an empty text, a text that is JSON, and one that PostgreSQL cannot hold."""
    world.use_json_column()
    for key, content in (("null", "null"), ("text", '""'), ("json", '"{}"'), ("nul", '"a\\u0000"'), ("deep", "[1.10]")):
        world.commit_text(key, content)
    with psycopg.connect(world.source_dsn) as connection:
        connection.execute('INSERT INTO outbox ("key", content, op) VALUES (%s, NULL, %s)', ["none", "delete"])
    world.audit()
    lines = ["null", '""', '"{}"', '"a\\u0000"', "[1.1]", "null"]
    keys = ["null", "text", "json", "nul", "deep", "none"]
    rows = [f'{{"key": "{key}", "content": {line}}}' for key, line in zip(keys, lines, strict=True)]
    assert look_up(world, "\n".join(rows)).counts == {"owed by content": "6"}
    cells = ["key,content", "null,", "text,", "json,{}", "deep,[1.1]", "none,"]
    assert look_up(world, "\n".join(cells) + "\n").counts == {"owed by content": "5"}
