"""A copy of state beside the history, on real ends: each key's content at the target and what the history says of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from recovery_api.domain.errors import NotFound
from recovery_api.models import Event, ImageAudit, Intent
from recovery_api.selectors.findings import event_content_get
from recovery_api.services.ends import sink_create, source_create
from recovery_api.services.event_reads import event_content_downloaded, image_value_request
from recovery_api.services.images import image_request, images_sweep
from recovery_api.services.people import person_create, roles_make
from recovery_api.services.pipelines import pipeline_create
from tests.integration.recovery.test_grounds import NUMBERED, deliver, source
from tests.integration.recovery.world import OUTBOX, World, run, world_make
from workers.evidence import schemas


@pytest.fixture
def mapped(transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path) -> World:
    """A numbered outbox and a mapped target that takes the whole content."""
    return mapped_make(database_factory, tmp_path)


def mapped_make(
    database_factory: Callable[[str], str], directory: Path, *, source_more: dict[str, Any] | None = None, **more: Any
) -> World:
    more = {"target": "sink_sql" not in more, **more}
    world = world_make(database_factory, directory, source_more={**NUMBERED, **(source_more or {})}, **more)
    source(world, "ALTER TABLE outbox DROP CONSTRAINT outbox_pkey, ADD PRIMARY KEY (id)")
    return world


def compare(world: World, frontier: str | None = None, keeps_base: bool = False) -> ImageAudit:
    asked = {"frontier": frontier, "keeps_base": keeps_base}
    intent = image_request(world.pipeline, actor="ada", now=timezone.now(), wake=False, **asked)  # type: ignore[arg-type]
    run(intent)
    return ImageAudit.objects.get(intent=intent)


def at_target(world: World, text: str) -> None:
    with psycopg.connect(world.sink_dsn) as connection:
        connection.execute(text.encode())


def event(world: World, key: str, content: Any, op: str = "insert") -> None:
    with psycopg.connect(world.source_dsn) as connection:
        body = None if content is None else json.dumps(content)
        connection.execute('INSERT INTO outbox (op, "key", content) VALUES (%s, %s, %s)', [op, key, body])


def named(image: ImageAudit) -> set[tuple[str, str]]:
    return {(row["word"], row["key"]) for row in image.sample}


def test_every_difference_is_told_by_its_word_and_key(mapped: World) -> None:
    for number, key in enumerate("abcdefg"):
        event(mapped, key, {"n": number, "amount": 1.50})
    event(mapped, "a", {"n": 99}, "update")
    event(mapped, "g", None, "delete")
    deliver(mapped, list("abcdefg"))
    clean = compare(mapped)
    assert clean.status == "mismatch_free", clean.says
    assert (clean.keys_count, clean.rows_count, clean.counts, clean.sample) == (7, 6, {}, [])
    at_target(mapped, """UPDATE mail SET content = '{"n": 7}' WHERE "key" = 'b'""")
    at_target(mapped, """DELETE FROM mail WHERE "key" = 'c'""")
    at_target(mapped, """INSERT INTO mail VALUES ('g', '{"n": 6}'), ('z', '{}')""")
    found = compare(mapped)
    assert (found.status, found.exit_code) == ("mismatched", 1), found.says
    assert named(found) == {("mismatched", "b"), ("missing", "c"), ("extra", "g"), ("extra", "z")}
    assert found.counts == {"mismatched": "1", "missing": "1", "extra": "2"}


COLUMNS = {
    "target": "orders",
    "target_key": "number",
    "target_columns": {"total": "total", "note": "note", "at": "placed_at"},
}
ORDERS = """CREATE TABLE orders (number integer PRIMARY KEY, total numeric(10, 2), note text, placed_at timestamptz,
    ours text DEFAULT 'not mapped')"""


def test_keys_and_contents_compare_as_the_targets_own_types_hold_them(
    transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path
) -> None:
    """A key's spelling, a rounded number, a zone, a note that is JSON; what the target cannot hold is missing there."""
    world = mapped_make(database_factory, tmp_path, sink_more=COLUMNS, sink_sql=ORDERS)
    whole = {"total": 1.005, "note": {"a": [1, None]}, "at": "2026-01-01 14:00:00+02"}
    event(world, "1", whole)
    event(world, "01", {**whole, "total": "2.50"}, "update")
    event(world, "2", {**whole, "note": None})
    event(world, "3", {"total": 3}, "insert")  # an insert may leave a member out: the column is null
    deliver(world, ["1", "01", "2", "3"])
    at_target(world, "UPDATE orders SET ours = 'changed'")
    clean = compare(world)
    assert (clean.status, clean.keys_count, clean.rows_count) == ("mismatch_free", 3, 3), clean.says
    now = timezone.now()
    event(world, "x", whole)
    event(world, "4", {**whole, "total": "no number"})
    at_target(world, "UPDATE orders SET placed_at = placed_at + interval '1 hour' WHERE number = 2")
    found = compare(world)
    assert named(found) == {("missing", "x"), ("missing", "4"), ("mismatched", "2")}, found.says
    for number, row in enumerate(found.sample):
        read = run(image_value_request(found, number, actor="ada", now=now, wake=False)).result
        assert read["is_committed"] and read["is_shown"] == (row["key"] == "2")


def test_an_update_that_carries_only_what_changed_is_refused_with_the_reason(
    transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path
) -> None:
    world = mapped_make(database_factory, tmp_path, sink_more=COLUMNS, sink_sql=ORDERS)
    event(world, "1", {"total": 1, "note": "n", "at": "2026-01-01T00:00:00Z"})
    deliver(world, ["1"])
    assert compare(world).status == "mismatch_free"
    event(world, "1", {"total": 2}, "update")
    found = compare(world)
    assert (found.status, found.exit_code, found.keys_count) == ("unknown", 3, 0)
    assert "does not carry all of them" in found.says and "only what changed" in found.says
    world.pipeline.sink.options = {**world.pipeline.sink.options, "state_updates": "partial"}
    world.pipeline.sink.save()
    assert "only what changed" in compare(world).says


def test_a_key_with_an_acceptance_above_the_frontier_is_unknown(mapped: World) -> None:
    event(mapped, "a", {"n": 1})
    event(mapped, "b", {"n": 2})
    event(mapped, "a", {"n": 3}, "update")
    event(mapped, "c", {"n": 4})
    deliver(mapped, ["a", "b", "c"])
    found = compare(mapped, frontier="2")
    assert (found.status, found.counts) == ("unknown", {"later event accepted": "2"}), found.says
    assert named(found) == {("later event accepted", "a"), ("later event accepted", "c")}
    at_target(mapped, "UPDATE mail SET content = '{}'")
    found = compare(mapped, frontier="2")
    assert (found.status, found.counts["mismatched"]) == ("mismatched", "1"), "b is certain, whatever a and c are"
    assert compare(mapped).counts == {"mismatched": "3"}


def test_coordinates_that_begin_with_a_transaction_are_no_commit_order_unless_somebody_says_so(
    world_with_target: World,
) -> None:
    world = world_with_target
    world.commit(["a"])
    world.deliver(["a"])
    world.until_safe()
    at_target(world, "DELETE FROM mail")
    found = compare(world)
    assert (found.status, found.keys_count) == ("unknown", 0)
    assert "the later starter may commit first" in found.says and "keys_commit_in_order=true" in found.says
    world.pipeline.source.options = {**world.source_options, "keys_commit_in_order": True}
    world.pipeline.source.save()
    found = compare(world)
    assert named(found) == {("missing", "a")}
    assert [one for one in found.givens if "in the order of their coordinates (ada on" in one]
    world.commit(["b"])
    world.until_safe()
    at_target(world, 'INSERT INTO mail SELECT \'a\', \'{"key": "a", "amount": 1.5}\'')
    world.deliver(["b"])
    assert (compare(world).status, compare(world).exit_code) == ("mismatch_free_given", 4)


def test_what_was_purged_is_unknown_and_a_base_of_the_history_tells_it(mapped: World) -> None:
    for key in "abc":
        event(mapped, key, {"n": key})
    event(mapped, "c", None, "delete")
    deliver(mapped, list("abc"))
    based = compare(mapped, keeps_base=True)
    assert based.status == "mismatch_free" and based.base_digest
    event(mapped, "b", {"n": "again"}, "update")
    event(mapped, "d", {"n": "d"})
    deliver_at(mapped, 5, 6)
    source(mapped, "DELETE FROM outbox WHERE id < 5")
    at_target(
        mapped, """INSERT INTO mail VALUES ('c', '{}'), ('y', '{}'); UPDATE mail SET content = '{}' WHERE "key" = 'a'"""
    )
    found = compare(mapped)
    assert named(found) == {("mismatched", "a"), ("extra", "c"), ("extra", "y")}, found.says
    assert found.based_on == based and not found.gap
    ImageAudit.objects.update(base_digest="")
    found = compare(mapped)
    assert found.status == "unknown" and found.gap == "the oldest event kept is not the first one"
    assert named(found) == {("history not whole", key) for key in "acy"}


def test_a_key_whose_latest_event_was_purged_by_a_mark_is_not_judged_by_an_older_one(
    transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path
) -> None:
    """The oldest event stays, for it is not sent yet; what was sent after it goes."""
    world = mapped_make(database_factory, tmp_path, source_more={"retention": "purges"})
    event(world, "a", {"n": 1})
    event(world, "a", {"n": 2}, "update")
    event(world, "b", {"n": 3})
    event(world, "c", {"n": 4})
    deliver_at(world, 2, 3, 4)
    assert compare(world).status == "mismatch_free"
    source(world, "DELETE FROM outbox WHERE id IN (2, 3)")
    found = compare(world)
    assert named(found) == {("history not whole", "a"), ("history not whole", "b")}, found.says


def test_a_base_counts_only_while_its_files_are_what_was_written(mapped: World) -> None:
    event(mapped, "a", {"n": 1})
    deliver(mapped, ["a"])
    based = compare(mapped, keeps_base=True)
    (file,) = Path(based.evidence_uri).glob("base-*.parquet")
    file.write_bytes(file.read_bytes()[:-1] + b"!")
    found = compare(mapped)
    assert found.status == "unknown" and "not what was written there" in found.says
    ImageAudit.objects.filter(pk=based.pk).update(base_incarnation="another server")
    assert compare(mapped).status == "mismatch_free", "of another incarnation it is no base"
    ImageAudit.objects.filter(pk=based.pk).update(base_incarnation=based.base_incarnation)
    mapped.pipeline.scope = ["a"]
    mapped.pipeline.save()
    assert compare(mapped).status == "mismatch_free", "nor under another scope"


def test_a_scope_leaves_other_keys_out(mapped: World) -> None:
    for key in "ab":
        event(mapped, key, {"n": 1})
    deliver(mapped, ["a"])
    mapped.pipeline.scope = ["a", "z"]
    mapped.pipeline.save()
    at_target(mapped, """INSERT INTO mail VALUES ('z', '{}'), ('y', '{}')""")
    assert named(compare(mapped)) == {("extra", "z")}


def test_a_login_that_may_not_read_the_target_says_what_to_grant(mapped: World) -> None:
    event(mapped, "a", {"n": 1})
    deliver(mapped, ["a"])
    with psycopg.connect(mapped.sink_dsn, autocommit=True) as admin:
        name = admin.info.dbname
        admin.execute(f"CREATE ROLE {name}_reads LOGIN PASSWORD 'x' IN ROLE {name}_fencepost_auditor".encode())
        dsn = psycopg.conninfo.make_conninfo(mapped.sink_dsn, user=f"{name}_reads", password="x")
    Path(mapped.sink_options["connection"].removeprefix("file:")).write_text(dsn)
    found = compare(mapped)
    assert (found.status, found.exit_code) == ("unknown", 3)
    assert "may not read 'key', 'content'" in found.says and "GRANT SELECT" in found.says


def test_what_the_archive_holds_of_a_purged_history_counts(mapped: World) -> None:
    mapped.pipeline.options = {**mapped.pipeline.options, "is_archived": True}
    mapped.pipeline.save()
    event(mapped, "a", {"n": 1.50, "note": 'a "quoted" \\ one'})
    event(mapped, "", {"n": "an empty key"})
    event(mapped, "b", {"n": 2})
    event(mapped, "b", None, "delete")
    event(mapped, "c", {"n": 3})
    deliver_at(mapped, *range(1, 6))
    assert mapped.audit().status == "exactly_once"
    event(mapped, "c", {"n": 4}, "update")
    deliver_at(mapped, 6)
    source(mapped, "DELETE FROM outbox WHERE id < 5")
    clean = compare(mapped)
    assert (clean.status, clean.gap, clean.keys_count) == ("mismatch_free", "", 4), clean.says
    at_target(
        mapped, """INSERT INTO mail VALUES ('b', '{}'), ('z', '{}'); UPDATE mail SET content = '{}' WHERE "key" = 'a'"""
    )
    assert named(compare(mapped)) == {("mismatched", "a"), ("extra", "b"), ("extra", "z")}
    archived = mapped.pipeline.archive_parts.get()
    (path,) = Path(settings.FENCEPOST_EVIDENCE_DIR).glob(f"archive/*/{archived.file}")
    pq.write_table(pq.read_table(path).slice(1), path)
    found = compare(mapped)
    assert found.status == "unknown" and "not what was written there" in found.says


def test_any_table_with_a_key_is_compared_beside_a_record_that_is_a_table(
    transactional_db: None, database_factory: Callable[[str], str], tmp_path: Path
) -> None:
    source_dsn, sink_dsn = database_factory("orders"), database_factory("mail")
    for name, dsn in (("source", source_dsn), ("sink", sink_dsn)):
        (tmp_path / f"{name}.dsn").write_text(dsn)
    with psycopg.connect(source_dsn, autocommit=True) as connection:
        connection.execute(OUTBOX.replace("PRIMARY KEY (tx, id)", "PRIMARY KEY (id)"))
    with psycopg.connect(sink_dsn) as connection:
        connection.execute("CREATE TABLE accepted (id bigint PRIMARY KEY, op text, key text, content jsonb)")
        connection.execute(
            "CREATE TABLE state (key text, content text, UNIQUE (key)) PARTITION BY HASH (key);"
            "CREATE TABLE state_0 PARTITION OF state FOR VALUES WITH (MODULUS 2, REMAINDER 0);"
            "CREATE TABLE state_1 PARTITION OF state FOR VALUES WITH (MODULUS 2, REMAINDER 1)"
        )
    common = {"coordinate": ["id"], "op": "op", "key": "key", "content": "content"}
    from_source = {"connection": f"file:{tmp_path / 'source.dsn'}", "table": "outbox", **common, "share_lock": True}
    to_sink = {"connection": f"file:{tmp_path / 'sink.dsn'}", "table": "accepted", **common}
    to_sink |= {"state_table": "state", "state_key": "key", "state_content": "content"}
    now = timezone.now()
    made = source_create("orders", "postgresql_outbox", from_source, actor="ada", now=now)
    sink = sink_create("mail", "postgresql_table", to_sink, actor="ada", now=now)
    world = World(source_dsn, sink_dsn, from_source, to_sink, pipeline_create("p", made, sink, actor="ada", now=now))
    for key in "abcd":
        event(world, key, {"key": key})
        at_target(world, f"""INSERT INTO state VALUES ('{key}', '{{"key": "{key}"}}')""")
    at_target(world, "INSERT INTO accepted SELECT n, 'insert', chr(96 + n), '{}' FROM generate_series(1, 4) n")
    assert compare(world).status == "mismatch_free"
    at_target(world, "INSERT INTO accepted VALUES (9, 'update', 'd', '{}'); DELETE FROM state WHERE key = 'a'")
    at_target(world, "UPDATE state SET content = '{}' WHERE key IN ('b', 'd')")
    found = compare(world)
    assert named(found) == {("missing", "a"), ("mismatched", "b"), ("later event accepted", "d")}


def test_a_schedule_asks_for_it_and_the_same_finding_is_told_once(mapped: World) -> None:
    now = timezone.now()
    assert images_sweep(now) == 0
    mapped.pipeline.options = {**mapped.pipeline.options, "image_every_seconds": 600}
    mapped.pipeline.save()
    event(mapped, "a", {"n": 1})
    for minutes in (0, 11):
        at = now + timedelta(minutes=minutes)
        assert (images_sweep(at), images_sweep(at)) == (1, 0)
        intent = Intent.objects.filter(action="image").latest("created_at")
        assert intent.created_by == "schedule"
        run(intent)
    assert {image.counts["missing"] for image in ImageAudit.objects.filter(is_scheduled=True)} == {"1"}
    assert Event.objects.filter(kind="image recorded").count() == 1


def test_rest_command_and_page_tell_the_same(mapped: World, client: Client) -> None:
    event(mapped, "<b>", {"n": 1})
    assert command("image", "orders-mail", "--json")[1] == 3
    shown, code = command("image", "orders-mail", "--here", "--json")
    assert (code, shown["status"], shown["sample"]) == (
        1,
        "mismatched",
        [{"number": 0, "word": "missing", "key": "<b>", "coordinate": "1"}],
    )
    assert command("image", "orders-mail", "--show", "--json") == (shown, 1)
    ended = Intent.objects.get(action="image", state="done")
    assert command("intents", "wait", str(ended.id), "--json") == (shown, 1), "whoever waits gets its exit code, too"
    deliver(mapped, ["<b>"])
    shown, code = command("image", "orders-mail", "--here", "--json")
    assert (code, shown["status"], shown["keys"]) == (0, "mismatch_free", 1)
    roles_make()
    client.force_login(person_create("olga", "a long password", ["operator"]))
    listed = client.get("/api/v1/images?pipeline=orders-mail", secure=True).json()["items"]
    assert [one["status"] for one in listed] == ["mismatch_free", "mismatched"]
    assert client.get(f"/api/v1/images/{shown['image']}", secure=True).json()["keys"] == "1"
    page = client.get("/pipelines/orders-mail/", secure=True).content.decode()
    assert "mismatch-free at f" in page and "It says nothing of what was delivered" in page
    asked = client.post("/pipelines/orders-mail/image/", secure=True)
    assert asked.status_code == 302 and Intent.objects.filter(action="image", state="queued").count() == 2
    kit_alone = {name: value for name, value in mapped.sink_options.items() if not name.startswith("target")}
    mapped.pipeline.sink.options = kit_alone
    mapped.pipeline.sink.save()
    answer = client.post("/api/v1/images", {"pipeline": "orders-mail"}, content_type="application/json", secure=True)
    assert answer.status_code == 409 and "no copy of state" in answer.json()["detail"]
    assert "Compare the target" not in client.get("/pipelines/orders-mail/", secure=True).content.decode()


def test_the_values_of_a_named_key_are_read_on_demand_and_that_stands_in_the_timeline(mapped: World) -> None:
    event(mapped, "a", {"n": 1})
    deliver(mapped, ["a"])
    at_target(mapped, """UPDATE mail SET content = '{"n": 7}'; INSERT INTO mail VALUES ('z', '{}')""")
    found = compare(mapped)
    read = {}
    for number, row in enumerate(found.sample):
        intent = run(image_value_request(found, number, actor="ada", now=timezone.now(), wake=False))
        assert "n" not in intent.result and intent.result["is_shown"]
        content = event_content_get(intent.id)
        event_content_downloaded(content, actor="ada", now=timezone.now())
        read[row["key"]] = json.loads(bytes(content.body))
    assert json.loads(read["a"]["committed"]["content"]) == {"n": 1} and read["z"]["committed"] is None
    assert [json.loads(read[key]["target"]) for key in "az"] == [{"content": {"n": 7}}, {"content": {}}]
    assert Event.objects.filter(kind="content read", actor="ada").count() == 4
    with pytest.raises(NotFound):
        image_value_request(found, 2, actor="ada", now=timezone.now(), wake=False)


def command(*words: str) -> tuple[dict[str, Any], int]:
    out, code = StringIO(), 0
    try:
        call_command(*words, stdout=out, stderr=StringIO())
    except SystemExit as ended:
        code = int(ended.code or 0)
    return json.loads(out.getvalue().splitlines()[-1]), code


def deliver_at(world: World, *numbers: int) -> None:
    """Delivers the events of these numbers alone."""
    with psycopg.connect(world.source_dsn) as connection:
        rows = connection.execute(
            'SELECT id, event_id, op, "key", content::text FROM outbox WHERE id = ANY(%s) ORDER BY id', [list(numbers)]
        ).fetchall()
    names = [name for name in schemas.BATCH.names if name not in ("lane", "ordinal")]
    batch = [{"lane": "0", "ordinal": 0, **dict(zip(names, row, strict=True))} for row in rows]
    assert set(world.sink().deliver(0, pa.Table.from_pylist(batch, schema=schemas.BATCH))) == {"accepted"}
