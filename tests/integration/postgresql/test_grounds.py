"""What a safe frontier rests on: what is proven, who could make it false, and that each such way is found."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import Unsuitable
from recovery_api.domain.grounds import Standing
from tests.integration.postgresql.mapped_tables import Bench, lane
from tests.pins import pin
from workers.connectors.readings import SafeFrontier

LOCKED = {"share_lock": True, "lock_timeout_ms": 50, "lock_tries": 2}
TABLE = "CREATE TABLE outbox (id bigint GENERATED {how} AS IDENTITY PRIMARY KEY, key text, content jsonb)"
PARTITIONED = """
CREATE TABLE outbox (id bigint GENERATED ALWAYS AS IDENTITY, key text, content jsonb, PRIMARY KEY (id))
    PARTITION BY RANGE (id);
CREATE TABLE outbox_low PARTITION OF outbox FOR VALUES FROM (MINVALUE) TO (3);
CREATE TABLE outbox_high PARTITION OF outbox FOR VALUES FROM (3) TO (MAXVALUE)
"""
WITH_XID = """
CREATE TABLE outbox (
    tx xid8 NOT NULL DEFAULT pg_current_xact_id(), id bigint GENERATED ALWAYS AS IDENTITY, key text, content jsonb,
    PRIMARY KEY (tx, id)
)
"""
XID = {"coordinate": ["tx", "id"], "coordinate_spelling": "xid8_bigint"}
BY_COLUMN = "GRANT INSERT (key, content) ON outbox TO {app}"


class Closed:
    """An outbox whose owner nobody can log in as, and one login, `app`, that inserts by column."""

    def __init__(self, bench: Bench, table: str, options: dict[str, Any]) -> None:
        self.bench, self.options = bench, options
        self.owner, self.app = (f"{bench.run.info.dbname}_{name}" for name in ("owner", "app"))
        bench.run.execute(f"CREATE ROLE {self.owner}; CREATE ROLE {self.app} LOGIN PASSWORD 'x'")
        bench.run.execute(f"GRANT CREATE ON SCHEMA public TO {self.owner}; SET ROLE {self.owner}")
        bench.run.execute(table)
        bench.run.execute("RESET ROLE")
        self.run(BY_COLUMN)
        bench.run.execute("INSERT INTO outbox (key) VALUES ('a'), ('b')")

    def run(self, text: str) -> None:
        self.bench.run.execute(text.format(app=self.app, owner=self.owner))

    def safe(self, **more: Any) -> SafeFrontier:
        found: SafeFrontier = lane(pin(self.bench.source(**{**self.options, **more}))).safe
        return found


@pytest.fixture
def closed(bench: Bench) -> Closed:
    return Closed(bench, TABLE.format(how="ALWAYS"), LOCKED)


@pytest.fixture
def closed_xid(bench: Bench) -> Closed:
    return Closed(bench, WITH_XID, XID)


def test_an_owner_without_login_and_inserts_by_column_prove_a_drawn_number(closed: Closed) -> None:
    safe = closed.safe()
    assert (safe.ground, safe.coordinate, safe.standing) == ("share lock", Coordinate(2), Standing.PROVEN)
    assert safe.weakness is None and safe.catalogue and safe.incarnation


WAYS_IN = {
    "INSERT on the table (OVERRIDING, COPY, MERGE)": "GRANT INSERT ON outbox TO {app}",
    "INSERT on the coordinate": "GRANT INSERT (id) ON outbox TO {app}",
    "INSERT for PUBLIC": "GRANT INSERT ON outbox TO PUBLIC",
    "pg_write_all_data": "GRANT pg_write_all_data TO {app}",
    "membership in the owner": "GRANT {owner} TO {app}",
    "membership that inherits nothing": "GRANT {owner} TO {app} WITH INHERIT FALSE, SET FALSE, ADMIN TRUE",
    "an owner that may log in": "ALTER ROLE {owner} LOGIN",
    "a trigger of one's own": "GRANT TRIGGER ON outbox TO {app}",
    "a trigger before the row": (
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.id := 1; RETURN NEW; END';"
        "CREATE TRIGGER t BEFORE INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION f()"
    ),
    "a rule": "CREATE RULE r AS ON INSERT TO outbox WHERE NEW.key = 'never' DO INSTEAD NOTHING",
    "drawing ahead": "GRANT USAGE ON SEQUENCE outbox_id_seq TO {app}",
    "setting the sequence": "GRANT UPDATE ON SEQUENCE outbox_id_seq TO {app}",
    "a view with its owner's rights": "CREATE VIEW v AS TABLE outbox; GRANT INSERT ON v TO {app}",
    "a view over a view": ("CREATE VIEW v AS TABLE outbox; CREATE VIEW w AS TABLE v; GRANT INSERT ON w TO {app}"),
    "a rule elsewhere": (
        "CREATE TABLE elsewhere (id bigint); GRANT INSERT ON elsewhere TO {app};"
        "CREATE RULE r AS ON INSERT TO elsewhere DO ALSO INSERT INTO outbox OVERRIDING SYSTEM VALUE VALUES (NEW.id)"
    ),
    "a definer function": (
        "CREATE FUNCTION put() RETURNS void LANGUAGE sql SECURITY DEFINER"
        " AS 'INSERT INTO public.outbox OVERRIDING SYSTEM VALUE VALUES (1)'"
    ),
    "an event trigger's function": (
        "CREATE FUNCTION e() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'; ALTER FUNCTION e() OWNER TO {app};"
        "CREATE EVENT TRIGGER {app}_e ON ddl_command_end EXECUTE FUNCTION e()"
    ),
    "a superuser's role": "GRANT postgres TO {app}",
    "the server's programs": "GRANT pg_execute_server_program TO {app}",
}


@pytest.mark.parametrize("way", WAYS_IN)
def test_t6_whoever_could_supply_a_number_ends_the_proof(closed: Closed, way: str) -> None:
    """T6: ALWAYS forbids neither OVERRIDING, COPY nor MERGE, and there are other ways in."""
    before = closed.safe()
    try:
        closed.run(WAYS_IN[way])
        safe = closed.safe()
        assert safe.standing is Standing.ASSUMED and safe.weakness is not None
        assert safe.catalogue != before.catalogue
        attested = closed.safe(numbers_are_drawn_in_insert=True)
        assert attested.standing is Standing.ATTESTED
        assert attested.weakness is not None and "owner's word" in attested.weakness
    finally:
        closed.run("DROP EVENT TRIGGER IF EXISTS {app}_e; REVOKE postgres FROM {app}")


def test_t6_a_session_of_the_owner_that_is_still_open_ends_the_proof(closed: Closed) -> None:
    from psycopg.conninfo import make_conninfo

    closed.run("ALTER ROLE {owner} LOGIN PASSWORD 'x'")
    with psycopg.connect(make_conninfo(closed.bench.dsn, user=closed.owner, password="x")):
        closed.run("ALTER ROLE {owner} NOLOGIN")
        assert closed.safe().standing is Standing.ASSUMED


def test_t6_by_default_identity_and_its_update_right(bench: Bench) -> None:
    """T6: a column grant proves BY DEFAULT as well as ALWAYS; the right to UPDATE the number does not."""
    closed = Closed(bench, TABLE.format(how="BY DEFAULT"), LOCKED)
    assert closed.safe().standing is Standing.PROVEN
    closed.run("GRANT UPDATE (id) ON outbox TO {app}")
    assert closed.safe().standing is Standing.ASSUMED


def test_t6_always_identity_is_not_weakened_by_the_right_to_update(closed: Closed) -> None:
    closed.run("GRANT UPDATE, DELETE ON outbox TO {app}")
    assert closed.safe().standing is Standing.PROVEN


def test_t6_a_sequence_that_stands_below_the_head_makes_only_what_it_gave_out_safe(closed: Closed) -> None:
    """T6: a superuser's row at 50 says nothing of 3 to 49, which are still to be drawn."""
    closed.run("INSERT INTO outbox (id, key) OVERRIDING SYSTEM VALUE VALUES (50, 'loaded')")
    safe = closed.safe()
    assert (safe.coordinate, safe.standing) == (Coordinate(2), Standing.PROVEN)
    assert "stands at 2" in safe.says


def test_t6_where_the_sequence_cannot_be_seen_it_is_not_proven(closed: Closed) -> None:
    from psycopg.conninfo import make_conninfo

    reader = f"{closed.bench.run.info.dbname}_reader"
    closed.run(f"CREATE ROLE {reader} LOGIN PASSWORD 'x'; GRANT SELECT, MAINTAIN ON outbox TO {reader}")
    dsn = make_conninfo(closed.bench.dsn, user=reader, password="x")
    safe = closed.safe(dsn=dsn)
    assert safe.standing is Standing.ASSUMED and "GRANT SELECT ON SEQUENCE" in (safe.weakness or "")
    closed.run(f"GRANT SELECT ON SEQUENCE outbox_id_seq TO {reader}")
    assert closed.safe(dsn=dsn).standing is Standing.PROVEN


@pytest.mark.parametrize("attested", [False, True])
def test_t5_numbers_drawn_several_at_a_time_are_never_proven(bench: Bench, attested: bool) -> None:
    """T5: CACHE 20, whatever anybody attests."""
    closed = Closed(bench, TABLE.format(how="ALWAYS").replace("IDENTITY", "IDENTITY (CACHE 20)"), LOCKED)
    safe = closed.safe(numbers_are_drawn_in_insert=attested)
    assert (safe.ground, safe.standing) == ("grace", Standing.ASSUMED)
    assert "20 numbers at a time" in (safe.weakness or "")


def test_t7_transaction_ids_are_proven_where_nobody_can_give_one(closed_xid: Closed) -> None:
    safe = closed_xid.safe()
    assert (safe.ground, safe.standing, safe.weakness) == ("transaction ids", Standing.PROVEN, None)


@pytest.mark.parametrize(
    "way",
    ["GRANT INSERT ON outbox TO {app}", "GRANT INSERT (tx) ON outbox TO {app}", "GRANT UPDATE ON outbox TO {app}"],
)
def test_t7_a_role_that_may_give_a_transaction_id_ends_the_proof(closed_xid: Closed, way: str) -> None:
    """T7: an xid8 filled by its default, and a role that gives it itself."""
    closed_xid.run(way)
    safe = closed_xid.safe()
    assert (safe.ground, safe.standing) == ("transaction ids", Standing.ASSUMED)
    assert closed_xid.app in (safe.weakness or "")
    assert closed_xid.safe(numbers_are_drawn_in_insert=True).standing is Standing.ATTESTED


def test_t7_a_function_that_only_has_the_name_is_no_transaction_id(bench: Bench) -> None:
    bench.run.execute("CREATE FUNCTION public.pg_current_xact_id() RETURNS xid8 LANGUAGE sql AS $$ SELECT '3'::xid8 $$")
    bench.run.execute(WITH_XID.replace("pg_current_xact_id", "public.pg_current_xact_id"))
    bench.run.execute("INSERT INTO outbox (key) VALUES ('a')")
    name = bench.run.info.dbname
    bench.run.execute(f'ALTER DATABASE "{name}" SET search_path = public, pg_catalog')
    try:
        assert lane(pin(bench.source(**XID))).safe.ground == "grace"
    finally:
        bench.run.execute(f'ALTER DATABASE "{name}" RESET search_path')


@pytest.mark.parametrize(
    "body",
    [
        "LOCK TABLE public.outbox IN ROW SHARE MODE",
        "LOCK TABLE public.outbox IN SHARE UPDATE EXCLUSIVE MODE",
        "PERFORM 1",
    ],
)
def test_t8_a_function_that_takes_no_share_lock_is_no_ground(closed: Closed, body: str) -> None:
    """T8: `pg_locks` is asked, not the function. One writer is open, and was believed to be kept out."""
    closed.run(f"CREATE FUNCTION quiet() RETURNS void LANGUAGE plpgsql AS $$ BEGIN {body}; END $$")
    writer = closed.bench.session()
    writer.execute("INSERT INTO outbox (key) VALUES ('open')")
    named = {"share_lock_function": "public.quiet"}
    safe = closed.safe(**named)
    assert (safe.coordinate, safe.standing) == (None, Standing.ASSUMED)
    writer.commit()
    safe = closed.safe(**named)
    assert (safe.ground, safe.standing) == ("grace", Standing.ASSUMED)
    assert "no SHARE lock on public.outbox" in (safe.weakness or "")


def test_t8_a_function_that_takes_the_lock_of_one_leaf_is_no_ground(bench: Bench) -> None:
    closed = Closed(bench, PARTITIONED, LOCKED)
    closed.run(
        "CREATE FUNCTION quiet() RETURNS void LANGUAGE plpgsql"
        " AS $$ BEGIN LOCK TABLE ONLY public.outbox IN SHARE MODE; END $$"
    )
    safe = closed.safe(share_lock_function="public.quiet")
    assert safe.standing is Standing.ASSUMED and "public.outbox_low" in (safe.weakness or "")


def test_t24_identity_on_a_partitioned_table_is_proven_as_for_a_plain_one(bench: Bench) -> None:
    """T24: the identity of a partition is its root's."""
    closed = Closed(bench, PARTITIONED, LOCKED)
    safe = closed.safe()
    assert (safe.ground, safe.coordinate, safe.standing) == ("share lock", Coordinate(2), Standing.PROVEN)
    digest = safe.catalogue
    closed.run("INSERT INTO outbox (key) VALUES ('c')")
    assert closed.safe().catalogue == digest
    closed.run("GRANT INSERT ON outbox_high TO {app}")
    opened = closed.safe()
    assert opened.standing is Standing.ASSUMED and "outbox_high" in (opened.weakness or "")
    assert opened.catalogue != digest


def test_t24_a_right_on_a_partition_between_root_and_leaf_is_found(bench: Bench) -> None:
    """T24: each table of the tree has rights of its own, the ones that hold no rows themselves included."""
    nested = PARTITIONED.replace("TO (MAXVALUE)", "TO (MAXVALUE) PARTITION BY RANGE (id)")
    closed = Closed(bench, f"{nested}; CREATE TABLE outbox_leaf PARTITION OF outbox_high DEFAULT", LOCKED)
    assert closed.safe().standing is Standing.PROVEN
    closed.run("GRANT INSERT ON outbox_high TO {app}")
    assert closed.safe().standing is Standing.ASSUMED


def test_a_partition_on_another_server_is_read_and_is_no_ground(bench: Bench) -> None:
    bench.run.execute(
        "CREATE TABLE outbox (id bigint GENERATED ALWAYS AS IDENTITY, content jsonb) PARTITION BY RANGE (id);"
        "CREATE TABLE outbox_here PARTITION OF outbox FOR VALUES FROM (MINVALUE) TO (100);"
        "CREATE EXTENSION file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw"
    )
    bench.run.execute(
        "CREATE FOREIGN TABLE outbox_far PARTITION OF outbox FOR VALUES FROM (100) TO (MAXVALUE) SERVER files"
        " OPTIONS (program 'echo 100,{}', format 'csv')"
    )
    bench.run.execute("INSERT INTO outbox (content) VALUES ('{}')")
    source = bench.source(**LOCKED)
    reading = pin(source)
    assert lane(reading).safe.standing is Standing.ASSUMED and "another server" in (lane(reading).safe.weakness or "")
    assert any("keeps no xmin" in one for one in reading.weaknesses)


def test_a_serial_whose_writers_draw_from_it_is_not_proven(bench: Bench) -> None:
    closed = Closed(bench, "CREATE TABLE outbox (id bigserial PRIMARY KEY, key text, content jsonb)", LOCKED)
    assert closed.safe().standing is Standing.PROVEN
    closed.run("GRANT USAGE ON SEQUENCE outbox_id_seq TO {app}")
    assert closed.safe().standing is Standing.ASSUMED


def test_a_grant_while_the_snapshot_is_taken_ends_the_proof(closed: Closed) -> None:
    source = closed.bench.source(**LOCKED)
    with source.hold_pin() as pinned:
        assert lane(pinned).safe.standing is Standing.PROVEN
        closed.run("GRANT INSERT ON outbox TO {app}")
        with source.hold_snapshot() as reading:
            assert lane(reading).safe.catalogue != lane(pinned).safe.catalogue


def test_t14_the_number_of_a_large_object_is_no_content(bench: Bench) -> None:
    """T14: Hibernate's default for byte[]."""
    bench.run.execute("CREATE TABLE outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, payload oid)")
    source = bench.source(content="payload", content_format="text")
    with pytest.raises(Unsuitable, match=r"large object.*lo_get"):
        pin(source)


def test_t22_xmin_is_no_coordinate(bench: Bench) -> None:
    """T22: it wraps, and an UPDATE renews it."""
    bench.run.execute("CREATE TABLE outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, content jsonb)")
    with pytest.raises(Unsuitable, match="wraps"):
        pin(bench.source(coordinate="xmin"))
