"""What both ends hold of one event: asked for by name, cut, logged, and never kept in the log."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.utils import timezone

from recovery_api.domain.coordinates import Coordinate, coordinate_parse
from recovery_api.domain.errors import BadInput, Refused
from recovery_api.management.auditing import audit_shown
from recovery_api.models import Event, Intent
from recovery_api.selectors.ends import source_spelling
from recovery_api.selectors.findings import (
    FindingFilter,
    event_content_start,
    event_contents_asked,
    event_sink_contents,
    finding_page,
)
from recovery_api.selectors.findings_named import findings_shown
from recovery_api.services.event_reads import event_read_request
from recovery_api.services.findings_left import finding_leave
from tests.integration.control.test_commands import run as run_command
from tests.integration.recovery.table_world import TableWorld, table_world_make
from tests.integration.recovery.world import World, run


@pytest.fixture
def table(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path) -> TableWorld:
    return table_world_make(database_factory, tmp_path)


def place(world: World, key: str) -> Coordinate:
    return coordinate_parse(world.coordinate(key), source_spelling(world.pipeline.source))


def read(world: World, key: str, actor: str = "ada") -> Intent:
    given: dict[str, Any] = {"actor": actor, "now": timezone.now(), "wake": False}
    return run(event_read_request(world.pipeline, "0", place(world, key), **given))


def test_both_contents_of_an_altered_event_are_read_cut_and_never_logged(table: TableWorld) -> None:
    table.commit(["a", "b"])
    table.deliver(["a", "b"])
    table.alter("""UPDATE mails SET content = jsonb_build_object('note', repeat('x', 100000)) WHERE "key" = 'a'""")
    audit = table.audit()
    (altered,) = finding_page(audit, FindingFilter(cause="altered"))
    named = findings_shown(table.pipeline, [altered])[0].named
    event = table.batch(["a"]).to_pylist()[0]
    assert (named.key, named.event_id) == ("a", event["event_id"]) and named.committed_at is not None
    told = "\n".join(audit_shown(str(audit.pk)).lines)
    assert f"key 'a'  event id {event['event_id']!r}  committed at {named.committed_at:%Y-%m-%dT%H:%M:%S}Z" in told

    intent = read(table, "a")
    (held,) = event_sink_contents(intent) or []
    assert (held["of"], held["is_cut"], len(held["content"])) == ("record", True, 65_536)
    assert held["bytes"] > 100_000 and held["content"].startswith('{"note": "xxx')
    assert event_content_start(intent, 1000) == (event["content"].encode(), len(event["content"]))
    assert intent.result["sink_contents"] == {
        "says": "As the record holds it.",
        "rows": [{"of": "record", "bytes": held["bytes"], "is_cut": True}],
    }
    told = json.dumps([[one.says, one.data] for one in Event.objects.all()]) + json.dumps(intent.result)
    assert "xxx" not in told and "amount" not in told, "it was looked at; what was seen is not kept"
    assert event_contents_asked(intent, "ada") and not event_contents_asked(intent, "grace")


def test_a_record_without_contents_shows_the_targets_row_and_says_what_that_is(world_with_target: World) -> None:
    world = world_with_target
    world.commit(["a"])
    world.deliver(["a"])
    with psycopg.connect(world.sink_dsn) as connection:
        connection.execute("""UPDATE mail SET content = '{"changed": true}'""")
    intent = read(world, "a")
    (held,) = event_sink_contents(intent) or []
    assert (held["of"], held["is_cut"]) == ("target", False) and '"changed": true' in held["content"]
    assert "a later event may have written it" in intent.result["sink_contents"]["says"]


def test_where_nothing_is_kept_beside_a_digest_that_is_said(world: World) -> None:
    world.commit(["a"])
    world.deliver(["a"])
    intent = read(world, "a")
    assert event_sink_contents(intent) is None
    assert intent.result["sink_contents"] == {"says": "The record keeps no contents.", "rows": []}


def test_a_finding_is_left_with_a_reason_and_the_newest_stands_beside_it(world: World) -> None:
    world.commit(["a"])
    audit = world.audit()
    at = world.coordinate("a")
    for reason in ("asked the shop", "a test order"):
        finding_leave(world.pipeline, at, reason=reason, actor="ada", now=timezone.now())
    (shown,) = findings_shown(world.pipeline, finding_page(audit, FindingFilter()))
    assert shown.left is not None and (shown.left.by, shown.left.reason) == ("ada", "a test order")
    said = run_command("omissions", "leave", "orders-mail", at, "--reason", "asked twice", "--actor", "grace")
    assert (said.code, "changes no verdict" in said.out) == (0, True), said.err
    (shown,) = findings_shown(world.pipeline, finding_page(audit, FindingFilter()))
    assert shown.left is not None and shown.left.by == "by command, as grace (not signed in)"
    with pytest.raises(BadInput, match="reason"):
        finding_leave(world.pipeline, at, reason=" ", actor="ada", now=timezone.now())
    with pytest.raises(Refused, match="no audit that is still listed"):
        finding_leave(world.pipeline, "1:1", reason="x", actor="ada", now=timezone.now())
