"""Whether a table can be appended to, and what absorbs a send that comes late: by the catalogue, each with what to do."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.integration.postgresql.mapped_tables import Bench

EFFECT = "CREATE TABLE accepted (id bigint PRIMARY KEY, event text, op text, key text, content jsonb)"
MAPPED = {"event_id": "event", "op": "op", "key": "key", "content": "content", "is_effect": True}


def ability(bench: Bench, **options: Any) -> Any:
    return bench.sink(**{**MAPPED, **options}).append_ability()


def problem(bench: Bench, **options: Any) -> str:
    found = ability(bench, **options)
    assert not found.may_append
    return " ".join(found.problems)


def test_a_table_that_is_the_effect_can_be_appended_to_and_absorbs_late_sends(bench: Bench) -> None:
    bench.run.execute(EFFECT)
    found = ability(bench)
    assert found.may_append and found.problems == ()
    assert found.absorbs_late_sends and "accepted_pkey" in found.late_sends_says
    assert bench.sink(**MAPPED).capability().lands_in_one_transaction


def test_a_table_not_declared_the_effect_is_never_written(bench: Bench) -> None:
    bench.run.execute(EFFECT)
    assert "is_effect" in problem(bench, is_effect=False)
    assert not bench.sink(**{**MAPPED, "is_effect": False}).capability().lands_in_one_transaction


@pytest.mark.parametrize(
    "unique, says",
    [
        ("", "No valid"),
        ("ALTER TABLE accepted ADD CONSTRAINT one UNIQUE (id) DEFERRABLE INITIALLY IMMEDIATE", "'one' is DEFERRABLE"),
        ("CREATE UNIQUE INDEX one ON accepted (id) WHERE op = 'insert'", "'one' is partial"),
        ("CREATE UNIQUE INDEX one ON accepted (id, key)", "No valid"),
        ("CREATE UNIQUE INDEX one ON accepted ((id + 0))", "No valid"),
        ("CREATE INDEX one ON accepted (id)", "No valid"),
    ],
)
def test_a_constraint_that_does_not_refuse_every_late_send_is_named(bench: Bench, unique: str, says: str) -> None:
    bench.run.execute(EFFECT.replace(" PRIMARY KEY", " NOT NULL") + ";" + unique)  # type: ignore[call-overload]
    found = ability(bench)
    assert found.may_append and not found.absorbs_late_sends
    assert says in found.late_sends_says and "in flight" in found.late_sends_says


def test_an_index_that_was_not_built_to_its_end_absorbs_nothing(bench: Bench) -> None:
    bench.run.execute(EFFECT.replace(" PRIMARY KEY", ""))
    bench.run.execute("INSERT INTO accepted (id) VALUES (1), (1)")
    with pytest.raises(psycopg.errors.UniqueViolation):
        bench.run.execute("CREATE UNIQUE INDEX CONCURRENTLY one ON accepted (id)")
    found = ability(bench)
    assert not found.absorbs_late_sends and "'one' is not valid" in found.late_sends_says


def test_a_primary_key_does_not_span_tables_that_inherit(bench: Bench) -> None:
    bench.run.execute(EFFECT + "; CREATE TABLE child () INHERITS (accepted)")
    found = ability(bench)
    assert not found.absorbs_late_sends and "inherit" in found.late_sends_says


def test_rights_that_are_missing_come_as_statements_that_grant_them(bench: Bench) -> None:
    bench.run.execute(EFFECT)
    role = f"{bench.run.info.dbname}_reader"
    name = sql.Identifier(role)
    bench.run.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'p'; GRANT SELECT ON accepted TO {}").format(name, name))
    database = sql.Identifier(bench.run.info.dbname)
    bench.run.execute(sql.SQL("REVOKE TEMPORARY ON DATABASE {} FROM PUBLIC").format(database))
    login = psycopg.conninfo.make_conninfo(bench.dsn, user=role, password="p")
    try:
        found = ability(bench, dsn=login)
        assert not found.may_lock and not found.may_insert and not found.may_append
        for said in found.problems:
            granted = said[said.index("GRANT") : said.index(";") + 1]
            bench.run.execute(granted)
        assert len(found.problems) == 3 and ability(bench, dsn=login).may_append
    finally:
        bench.run.execute(sql.SQL("GRANT TEMPORARY ON DATABASE {} TO PUBLIC").format(database))


@pytest.mark.parametrize(
    "change, says",
    [
        ("ALTER TABLE accepted ADD shop text NOT NULL", "'shop' must not be null"),
        ("CREATE RULE quiet AS ON INSERT TO accepted DO INSTEAD NOTHING", "Rule 'quiet'"),
        (
            "ALTER TABLE accepted DROP COLUMN event; ALTER TABLE accepted ADD event text GENERATED ALWAYS AS ('e') STORED",
            "'event' is mapped and generated",
        ),
        ("ALTER TABLE accepted ALTER id ADD GENERATED ALWAYS AS IDENTITY", "the table's own"),
    ],
)
def test_what_stands_in_the_way_of_an_insert_is_named(bench: Bench, change: str, says: str) -> None:
    bench.run.execute(EFFECT + ";" + change)  # type: ignore[call-overload]
    assert says in problem(bench)


@pytest.mark.parametrize(
    "options, says",
    [
        ({"key": "content->who"}, "key is read from a path in column 'content'"),
        ({"filter": "op = 'insert'"}, "A filter says which rows count"),
        ({"key": "joined.name", "joined_table": "people", "joined_on": {"key": "id"}}, "from the joined table"),
        ({"table": "shown"}, "is a view"),
    ],
)
def test_what_can_only_be_read_is_refused_with_a_sentence(bench: Bench, options: dict[str, Any], says: str) -> None:
    bench.run.execute(
        EFFECT + "; CREATE TABLE people (id text PRIMARY KEY, name text); CREATE VIEW shown AS TABLE accepted"
    )
    assert says in problem(bench, **options)


def test_row_security_and_a_missing_table_are_problems_too(bench: Bench) -> None:
    bench.run.execute(EFFECT)
    assert "does not exist" in problem(bench, table="elsewhere")


def test_triggers_and_foreign_keys_are_said(bench: Bench) -> None:
    bench.run.execute("CREATE TABLE keys (key text PRIMARY KEY)")
    bench.run.execute(EFFECT.replace("key text", "key text CONSTRAINT known REFERENCES keys"))
    bench.run.execute(
        "CREATE FUNCTION quiet() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
        "CREATE TRIGGER hush BEFORE INSERT ON accepted FOR EACH ROW EXECUTE FUNCTION quiet();"
        "CREATE TRIGGER off BEFORE INSERT ON accepted FOR EACH ROW EXECUTE FUNCTION quiet();"
        "ALTER TABLE accepted DISABLE TRIGGER off"
    )
    found = ability(bench)
    said = " ".join(found.says)
    assert found.may_append and "'hush' may change or swallow" in said and "'known'" in said and "'off'" not in said
    assert said in " ".join(bench.sink(**MAPPED).test().weaknesses)
