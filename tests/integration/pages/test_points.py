"""A sink's points on page, REST and command: declared and tested at a real end, side by side."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from django.core.management import call_command
from django.test import Client

from recovery_api.models import Sink
from recovery_api.rows import end_as_row
from tests.contract.sink_engines import kit_make
from tests.integration.pages.test_registering import admin, reference, run_newest  # noqa: F401  fixtures among them
from workers.connectors.sinks.kit import kit_sql

pytestmark = pytest.mark.django_db(transaction=True)


def points(sink: str) -> dict[str, dict[str, object]]:
    return {one["point"]: one for one in end_as_row(Sink.objects.get(name=sink))["points"]}


def test_a_fence_that_was_taken_out_is_declared_and_not_tested_on_every_face(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    client: Client = request.getfixturevalue("admin")
    address: str = request.getfixturevalue("reference")
    with psycopg.connect(Path(address.removeprefix("file:")).read_text()) as owner:
        owner.execute(kit_sql(kit_make(), owner.info.dbname).encode())
    form = {"kind": "postgresql_kit", "name": "mail", "option_connection": address, "option_batch_limit": "50"}
    found = client.post("/add/sink/", form | {"do": "test"})["Location"]
    run_newest()
    shown = client.get(found).content.decode()
    assert "Declared and tested: the weaker counts" in shown and "50 entries" in shown
    client.post(found)
    whole = points("mail")
    assert (whole["fence"]["declared"], whole["fence"]["counts"], whole["fence"]["is_weaker"]) == ("yes", "yes", False)
    assert (whole["batch limit"]["declared"], whole["batch limit"]["counts"]) == ("50 entries", "50 entries")
    with psycopg.connect(Path(address.removeprefix("file:")).read_text()) as owner:
        [body] = owner.execute(
            "SELECT pg_get_functiondef(p.oid) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
            " WHERE n.nspname = 'fencepost' AND p.proname = 'deliver' LIMIT 1"
        ).fetchone() or [""]
        owner.execute(body.replace("BEGIN", "BEGIN -- somebody's own", 1).encode())
    client.post("/sinks/mail/test/")
    run_newest()
    torn = points("mail")["fence"]
    assert (torn["declared"], torn["tested"], torn["counts"]) == ("yes", "no", "no") and torn["is_weaker"]
    assert "cannot be relied on" in str(torn["because"]) and torn["tested_at"]
    assert "less than declared" in client.get("/sinks/mail/").content.decode()
    call_command("sinks", "show", "mail")
    assert "fence: declared yes, tested no (less than declared); counts: no." in capsys.readouterr().out
    call_command("sinks", "show", "mail", "--json")
    assert {one["point"] for one in json.loads(capsys.readouterr().out)["points"]} == set(points("mail"))


def test_a_table_said_to_be_the_effect_counts_as_what_its_login_may_do(
    request: pytest.FixtureRequest, tmp_path: Path, sign_in: Callable[..., Client]
) -> None:
    client: Client = request.getfixturevalue("admin")
    dsn = Path(request.getfixturevalue("reference").removeprefix("file:")).read_text()
    role = "reads_only_" + psycopg.conninfo.conninfo_to_dict(dsn)["dbname"][-12:]  # type: ignore[operator]
    with psycopg.connect(dsn, autocommit=True) as owner:
        owner.execute("CREATE TABLE got (id bigint PRIMARY KEY, op text NOT NULL, key text, content jsonb)")
        owner.execute(f'CREATE ROLE "{role}" LOGIN PASSWORD \'p\'; GRANT SELECT ON got TO "{role}"'.encode())
        try:
            weak = psycopg.conninfo.make_conninfo(dsn, user=role, password="p")
            (tmp_path / "weak").write_text(weak)
            form = {
                "kind": "postgresql_table",
                "name": "effects",
                "option_connection": f"file:{tmp_path / 'weak'}",
                "option_table": "got",
                "option_coordinate": "id",
                "option_op": "op",
                "option_key": "key",
                "option_content": "content",
                "option_is_effect": "true",
            }
            found = client.post("/add/sink/", form | {"do": "test"})["Location"]
            run_newest()
            client.post(found)
            append = points("effects")["append under a lock"]
            assert (append["declared"], append["tested"], append["counts"]) == ("yes", "no", "no")
            assert "GRANT" in str(append["because"])
            assert points("effects")["identity key"]["declared"] == "not declared"
            assert points("effects")["identity key"]["counts"] == "yes"
        finally:
            owner.execute(f'DROP OWNED BY "{role}"; DROP ROLE "{role}"'.encode())
