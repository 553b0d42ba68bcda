"""What is installed is compared with what the kit installs, object by object; each difference is a sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from psycopg import sql

from recovery_api.domain.capabilities import Archetype
from recovery_api.domain.errors import Unsuitable
from tests.contract.sink_engines import batch_make, digest_make
from tests.integration.kit.kit_world import KitWorld
from workers.connectors.readings import CoordinateRange, Width
from workers.connectors.registry import delivery_make
from workers.connectors.sinks.kit import KIT_VERSION
from workers.connectors.sinks.kit.releases import Release, releases_of

ENDS = [releases_of(version)[end] for version in range(1, KIT_VERSION) for end in (0, -1)]
"""The oldest and the newest text of each earlier version."""
REPLACED = """
    CREATE OR REPLACE FUNCTION {schema}.admit(generation bigint) RETURNS text LANGUAGE plpgsql VOLATILE AS
    $$ BEGIN RETURN 'admitted'; END $$"""
HIJACKED = """
    CREATE FUNCTION {schema}.swap() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.key := 'x'; RETURN NEW; END $$;
    CREATE TRIGGER swaps BEFORE INSERT ON {schema}.accepted FOR EACH ROW EXECUTE FUNCTION {schema}.swap()"""
TAMPERED: list[tuple[str, str, bool]] = [
    (REPLACED, "function admit(generation bigint): its text is not that of version", True),
    ("ALTER FUNCTION {schema}.deliver(bigint, text, bigint, bigint, text, text, text, jsonb, bigint, bigint)"
     " SECURITY INVOKER", "function deliver(", True),
    ("ALTER FUNCTION {schema}.fire(bigint, bigint, jsonb, double precision) SET search_path = public", "function fire(", True),
    ("ALTER FUNCTION {schema}.arm(bigint, bigint, text, jsonb, double precision) OWNER TO CURRENT_USER", "Owner of function arm(", False),
    ("GRANT EXECUTE ON FUNCTION {schema}.fence_raise(bigint) TO PUBLIC", "Grants on function fence_raise(", False),
    (HIJACKED, "trigger accepted.swaps", True),
    ("CREATE RULE passes AS ON INSERT TO {schema}.accepted DO ALSO NOTHING", "rule accepted.passes", True),
    ("ALTER TABLE {schema}.accepted DROP CONSTRAINT coordinate_is_accepted_once",
     "constraint accepted.coordinate_is_accepted_once: missing", True),
    ("ALTER TABLE {schema}.accepted ALTER payload_digest DROP NOT NULL", "column accepted.payload_digest", True),
    ("ALTER TABLE {schema}.claim DROP CONSTRAINT claim_state_is_known", "constraint claim.claim_state_is_known", True),
    ("DROP INDEX {schema}.only_one_claim_is_open", "index claim.only_one_claim_is_open: missing", True),
    ("CREATE FUNCTION {schema}.left_over() RETURNS void LANGUAGE sql SECURITY DEFINER AS"
     " 'INSERT INTO {schema}.accepted DEFAULT VALUES'", "function left_over(): version", False),
    ("DROP FUNCTION {schema}.staged_purge(bigint)", "function staged_purge(row_limit bigint): missing", True),
    ("GRANT USAGE ON SCHEMA {schema} TO PUBLIC; GRANT CREATE ON SCHEMA {schema} TO PUBLIC", "Grants on schema", False),
    ("ALTER TABLE {schema}.staged SET LOGGED", "table staged", True),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "says", "breaks"), TAMPERED, ids=lambda value: str(value)[:40].strip())
def test_r6_each_change_of_the_installed_kit_is_named(world: KitWorld, statement: str, says: str, breaks: bool) -> None:
    world.admin.execute(world.sql(statement))
    found = [sentence for _, _, sentence in world.sink.undisciplined_paths()]
    assert any(says in sentence for sentence in found), found
    capability = world.sink.capability()
    assert any(says in ground for ground in capability.grounds)
    assert capability.has_fence is not breaks
    assert capability.has_identity_key is ("coordinate_is_accepted_once" not in statement)
    if breaks:
        assert capability.archetype is Archetype.QUERYABLE
        assert says in capability.unfenced_because


def test_r6_replaced_function_that_names_the_paths_hides_none(world: KitWorld) -> None:
    relay = f"{world.names.owner.removesuffix('_owner')}_relay_login"
    for statement in (
        "CREATE OR REPLACE FUNCTION {schema}.undisciplined_paths(OUT path text, OUT role name, OUT says text)"
        " RETURNS SETOF record LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT NULL::text, NULL::name, NULL::text WHERE false'",
        "GRANT INSERT ON {schema}.accepted TO {relay}",
        "DROP TRIGGER record_stays ON {schema}.accepted",
    ):
        world.admin.execute(world.sql(statement, relay=relay))
    found = " ".join(says for _, _, says in world.sink.undisciplined_paths())
    for says in (
        "function undisciplined_paths(",
        "Grants on table accepted",
        "INSERT",
        "trigger accepted.record_stays: missing",
    ):
        assert says in found


def test_r6_functions_with_others_rights_outside_the_schema_are_named(world: KitWorld) -> None:
    function = (
        "CREATE FUNCTION public.{name}() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS"
        " $$ BEGIN EXECUTE 'SELECT 1 FROM ' || {word}; END $$"
    )
    for name, word in (("of_owner", "x"), ("of_superuser", "accepted"), ("silent", "nothing")):
        world.admin.execute(sql.SQL(function).format(name=sql.Identifier(name), word=sql.Literal(word)))  # type: ignore[arg-type]
    world.admin.execute(world.sql("GRANT CREATE ON SCHEMA public TO {owner}", owner=world.names.owner))
    world.admin.execute(world.sql("ALTER FUNCTION public.of_owner() OWNER TO {owner}", owner=world.names.owner))
    try:
        found = [says for path, _, says in world.sink.undisciplined_paths() if path == "function"]
        assert len(found) == 3, found
        assert f"Function public.of_owner() runs with the rights of the kit's owner {world.names.owner}" in found[0]
        assert "Function public.of_superuser() runs with the rights of postgres, who can write the record" in found[1]
        assert "public.silent()" in found[2]
        assert "not known" in found[2]
    finally:
        for name in ("of_owner", "of_superuser", "silent"):
            world.admin.execute(sql.SQL("DROP FUNCTION public.{}()").format(sql.Identifier(name)))
        world.admin.execute(world.sql("REVOKE CREATE ON SCHEMA public FROM {owner}", owner=world.names.owner))


def test_r6_view_through_which_somebody_may_insert_is_named(world: KitWorld) -> None:
    world.admin.execute(world.sql("CREATE VIEW public.seen AS SELECT * FROM {schema}.accepted"))
    world.admin.execute(
        "CREATE VIEW public.seen_again AS SELECT * FROM public.seen; GRANT INSERT ON public.seen_again TO PUBLIC"
    )
    try:
        found = [says for path, _, says in world.sink.undisciplined_paths() if path == "view"]
        assert len(found) == 1
        assert "View public.seen_again over" in found[0]
        assert "everybody holds INSERT on it, with the rights of its owner postgres" in found[0]
    finally:
        world.admin.execute("DROP VIEW public.seen_again; DROP VIEW public.seen")


def test_r6_event_trigger_is_named(world: KitWorld) -> None:
    world.admin.execute(
        "CREATE FUNCTION public.on_ddl() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';"
        "CREATE EVENT TRIGGER sees_ddl ON ddl_command_end EXECUTE FUNCTION public.on_ddl()"
    )
    try:
        assert any("sees_ddl" in says for _, _, says in world.sink.undisciplined_paths())
    finally:
        world.admin.execute("DROP EVENT TRIGGER sees_ddl; DROP FUNCTION public.on_ddl()")


def test_r6_what_others_may_read_is_no_way_into_the_record(world: KitWorld) -> None:
    world.admin.execute(world.sql("GRANT SELECT ON {schema}.accepted TO pg_monitor"))
    assert {path for path, _, _ in world.sink.undisciplined_paths()} <= {"superuser"}
    assert world.sink.capability().has_fence


def test_r6_kit_in_a_database_of_another_name_is_the_same_kit(world: KitWorld, tmp_path: Path) -> None:
    """Its roles are named after the database it was installed in: a copy of that database has another name."""
    options = {name: value for name, value in world.options.items() if name != "prefix"}
    (tmp_path / "recoverer").write_text(world.recoverer)
    sink = delivery_make("postgresql_kit", {"connection": f"file:{tmp_path / 'recoverer'}", **options})
    assert sink.kit.prefix is None
    assert {path for path, _, _ in sink.undisciplined_paths()} <= {"superuser"}
    assert sink.capability().has_fence


@pytest.mark.slow
@pytest.mark.parametrize("release", ENDS, ids=lambda release: release.name)
def test_r7_older_kit_is_read_and_not_written_and_each_refusal_names_its_version(
    world_make: Callable[..., KitWorld], release: Release
) -> None:
    world = world_make(release=release)
    relay = world.connect(world.relay)
    generation = world.relay_start(relay)
    for coordinate in (1, 2):
        world.deliver(relay, generation, coordinate)
    says = f"ersion {release.version} of the sink kit is installed; this Fencepost writes version {KIT_VERSION}"
    report = world.sink.test()
    assert report.is_usable
    assert any(says in weakness and "--upgrade" in weakness for weakness in report.weaknesses)
    capability = world.sink.capability()
    assert (capability.archetype, capability.has_fence, capability.has_identity_key) == (
        Archetype.QUERYABLE,
        False,
        True,
    )
    assert says in capability.unfenced_because
    assert {path for path, _, _ in world.sink.undisciplined_paths()} <= {"superuser"}
    assert world.sink.state().fence == generation
    assert (world.sink.claims(5), dict(world.sink.hand_over())) == ([], {})
    assert len(world.sink.generations(5)) == 2
    with world.sink.hold_snapshot() as reading:
        batches = world.sink.read_accepted(reading, CoordinateRange("0", None, None), Width.FULL)
        assert sum(batch.num_rows for batch in batches) == 2
    batch = batch_make(3)
    steps: list[Callable[[], Any]] = [
        lambda: world.sink.generation_allocate("recoverer", "test"),
        lambda: world.sink.claim(generation, {}),
        lambda: world.sink.claim_open("test", {}),
        lambda: world.sink.claim_find("test"),
        lambda: world.sink.begin(generation),
        lambda: world.sink.arm(generation, digest_make(batch), {}),
        lambda: world.sink.stage(generation, 1, iter([batch])),
        lambda: world.sink.fire(generation, 1),
        lambda: world.sink.release(generation, "test"),
        lambda: world.sink.counter_raise(9),
        lambda: world.sink.staged_purge(),
    ]
    for step in steps:
        with pytest.raises(Unsuitable, match=f"{says}.*--upgrade"):
            step()


def test_r7_kit_of_a_newer_version_is_refused_as_such(world: KitWorld, tmp_path: Path) -> None:
    world.admin.execute(world.sql("UPDATE {schema}.standing SET kit_version = 99"))
    report = world.sink.test()
    assert not report.is_usable
    assert "version 99 of the sink kit is installed" in report.problems[0]
    assert "Upgrade Fencepost" in report.problems[0]
    with pytest.raises(Unsuitable, match="version 99"):
        world.sink.claim(1, {})


def test_r6_a_target_in_a_closed_schema_is_compared_whatever_the_order_of_its_columns(
    world_make: Callable[..., KitWorld], tmp_path: Path
) -> None:
    """Registered options are JSON, which keeps no order of members; the recoverer needs no right on the schema."""
    columns = {"customer": "customer", "cents": "cents", "state": "state"}
    prepare = (
        "DROP SCHEMA IF EXISTS post CASCADE; CREATE SCHEMA post;"
        " CREATE TABLE post.letters (number text PRIMARY KEY, customer text, cents text, state text)"
    )
    mapped = {"target": "letters", "target_schema": "post", "target_key": "number"}
    world = world_make(prepare=prepare, target_columns=columns, **mapped)
    world.options["target_columns"] = dict(reversed(columns.items()))
    capability = world.sink_as(world.recoverer, tmp_path).capability()
    assert capability.has_fence, capability.unfenced_because
