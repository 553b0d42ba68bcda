"""Sample rows by command: masked unless asked for, and then an event; at the sink, what was accepted last."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from recovery_api.models import Event
from tests.integration.control.test_commands import run
from tests.integration.recovery.world import world_make

pytestmark = pytest.mark.django_db(transaction=True)


def test_sample_rows_by_command(database_factory: Callable[[str], str], tmp_path: Path, transactional_db: None) -> None:
    world = world_make(database_factory, tmp_path)
    world.commit(["k1", "k2"])
    masked = run("sources", "test", "orders", "--here", "--json")
    [last, first] = masked.body["sample"]["rows"]
    assert (first["key"], last["key"], last["coordinate"]) == ("k1", "k2", world.coordinate("k2"))
    assert last["content_bytes"] == 28 and "content_start" not in last and "committed_at" in last
    assert not Event.objects.filter(kind="content read").exists()
    asked = run("sources", "test", "orders", "--here", "--contents", "--json", "--actor", "olga")
    assert asked.body["sample"]["rows"][0]["content_start"] == '{"key": "k2", "amount": 1.5}'
    assert Event.objects.get(kind="content read").actor == "by command, as olga (not signed in)"
    own = run("sources", "show", "orders", "--actor", "olga").out
    assert "key k2" in own and "content of 28 bytes" in own
    assert "key k2" not in run("sources", "show", "orders", "--actor", "eve").out

    assert "holds no row yet" in run("sinks", "test", "mail", "--here").out
    world.deliver(["k2", "k1"])
    accepted = run("sinks", "test", "mail", "--here", "--json").body["sample"]
    assert {row["key"] for row in accepted["rows"]} == {"k1", "k2"} and accepted["columns"][-1] == "payload_digest"
    assert run("sinks", "test", "mail", "--here", "--contents").code == 2  # a record holds no contents
