"""Each preset against its library's table, made, filled and delivered from in a real PostgreSQL, then audited."""

from __future__ import annotations

import re

import psycopg
import pytest
from django.utils import timezone

from recovery_api.presets import Answer, preset_get, preset_names
from recovery_api.services.ends import source_update
from tests.integration.presets.library_table import LOST, SENT, Shop, audit
from workers.connectors.postgresql.safe_frontier import GRACE, SHARE_LOCK

SOURCES = [name for name in preset_names("source") if preset_get(name).answer is not Answer.REFUSED]
SINKS = preset_names("sink")
AUDITED = [name for name in SOURCES if preset_get(name).answer is not Answer.OF_WHAT_IS_KEPT]


ADDS = re.compile(r"ALTER TABLE .*? UNIQUE;")


def made(shop: Shop, name: str) -> None:
    """The library's table, with the column that the source's test asks for where it lacks one."""
    preset = preset_get(name)
    shop.make(preset)
    if preset.added:
        (statement,) = ADDS.findall(" ".join(shop.test(preset)["problems"]))
        shop.run.execute(statement)
    shop.fill(preset)


@pytest.mark.spark
@pytest.mark.parametrize("name", AUDITED)
def test_an_audit_finds_what_the_librarys_relay_left_behind(shop: Shop, spark: object, name: str) -> None:
    preset = preset_get(name)
    assert preset.example is not None
    made(shop, name)
    shop.deliver(preset, SENT)
    pipeline = shop.pipeline(preset)
    found = audit(pipeline)
    counted = (found.lost_count, found.duplicate_count, found.premature_count)
    assert (found.status, counted) == (preset.example.owed, (len(LOST), 0, 0)), found.says
    shop.deliver(preset, LOST)
    found = audit(pipeline)
    assert found.status == preset.example.complete, found.says
    if preset.example.share_lock:
        locked = {**pipeline.source.options, "share_lock": True}
        source_update(pipeline.source, locked, actor="ada", now=timezone.now())
        pipeline.source.refresh_from_db()
        found = audit(pipeline)
        assert found.status == preset.example.share_lock, (found.says, found.givens)


@pytest.mark.spark
@pytest.mark.parametrize("name", [name for name in SOURCES if name not in AUDITED])
def test_where_the_library_takes_away_what_it_delivered_what_is_kept_is_judged(
    shop: Shop, spark: object, name: str
) -> None:
    preset = preset_get(name)
    made(shop, name)
    pipeline = None
    assert preset.example is not None
    for rows, status, code in ((SENT, preset.example.owed, 1), (LOST, preset.example.complete, 4)):
        shop.deliver(preset, rows)
        pipeline = pipeline or shop.pipeline(preset)
        found = audit(pipeline)
        assert (found.status, found.exit_code, found.premature_count) == (status, code, 0), found.says
        assert "cannot be told from one that never was" in " ".join([found.says, *found.weaknesses])


@pytest.mark.parametrize("name", [name for name in SOURCES if not preset_get(name).added])
def test_the_librarys_table_as_it_is_can_serve(shop: Shop, name: str) -> None:
    made(shop, name)
    report = shop.test(preset_get(name))
    assert (report["is_usable"], report["problems"]) == (True, [])
    assert report["facts"]["columns"] == [column.name for column in preset_get(name).columns]


@pytest.mark.parametrize("name", ["marten", "watermill", "axon", "masstransit-inbox"])
def test_a_preset_on_the_wrong_table_says_which_columns_are_missing(shop: Shop, name: str) -> None:
    preset = preset_get(name)
    shop.run.execute('CREATE TABLE public.other (id bigint, "type" text, "timestamp" timestamptz)')
    report = shop.test(preset, table="other", schema="public")
    assert not report["is_usable"]
    lacking = ", ".join(column.name for column in preset.columns if column.name not in ("id", "type", "timestamp"))
    has_some = any(column.name in ("id", "type", "timestamp") for column in preset.columns)
    wholly = f"lacks {lacking}" if has_some else "has none of its columns"
    assert any(preset.library in problem and wholly in problem for problem in report["problems"]), report["problems"]


def test_an_older_table_of_the_library_serves_where_the_mapped_columns_are_there(shop: Shop) -> None:
    """A preset is no more than options: what serves is nobody's business."""
    shop.run.execute(
        "CREATE TABLE mt_events (seq_id bigint PRIMARY KEY, id uuid, stream_id uuid, data jsonb, timestamp timestamptz)"
    )
    assert shop.test(preset_get("marten"))["is_usable"]


@pytest.mark.parametrize("name", [name for name in SOURCES if preset_get(name).added])
def test_a_table_without_an_order_is_refused_with_the_exact_statement(shop: Shop, name: str) -> None:
    preset = preset_get(name)
    shop.make(preset)
    report = shop.test(preset)
    problem = " ".join(report["problems"])
    assert not report["is_usable"] and "has not been added to the table yet" in problem, report
    assert "in the order of their INSERT, not of their commit" in problem
    shop.run.execute(ADDS.findall(problem)[0])
    assert shop.test(preset)["is_usable"]


@pytest.mark.spark
@pytest.mark.parametrize("name", SINKS)
def test_a_librarys_inbox_tells_what_one_consumer_did_not_get(shop: Shop, spark: object, name: str) -> None:
    """Message ids alone: complete by identity, never exactly once. A row that was only received is no acceptance."""
    preset = preset_get(name)
    assert preset.example is not None
    shop.make(preset)
    shop.letters_send(preset)
    shop.consume(preset, SENT)
    pipeline = shop.inbox_pipeline(preset)
    if "accepted_when" in preset.options:
        shop.receive(preset, LOST[-1])
    found = audit(pipeline)
    assert (found.status, found.lost_count) == (preset.example.owed, len(LOST)), found.says
    if "accepted_when" in preset.options:
        shop.mark(preset, LOST[-1])
        shop.consume(preset, LOST[:-1])
    else:
        shop.consume(preset, LOST)
    found = audit(pipeline)
    assert (found.status, found.exit_code) == (preset.example.complete, 4), found.says
    assert "contents and premature entries were not judged" in found.says


@pytest.mark.parametrize("name", SINKS)
def test_the_librarys_inbox_as_it_is_can_serve_and_several_consumers_need_one_named(shop: Shop, name: str) -> None:
    preset = preset_get(name)
    shop.make(preset)
    shop.consume(preset, [1])
    assert shop.test(preset)["is_usable"]
    if column := preset.options.get("consumer_column"):
        other = "00000000-0000-4000-9000-000000000002"
        shop.receive(preset, 2, {column: other})
        report = shop.test(preset)
        assert not report["is_usable"] and "consumer" in " ".join(report["problems"]), report
        assert shop.test(preset, consumer=other)["is_usable"]


@pytest.mark.parametrize(
    ("name", "because"),
    [
        ("marten", "'seq_id' of public.mt_events is not drawn from a sequence by its default"),
        ("watermill", "'transaction_id' of public.watermill_orders has not the default pg_current_xact_id()"),
        ("cap", "is not drawn from a sequence by its default"),
    ],
)
def test_a_number_that_no_default_draws_stays_on_a_grace_whatever_is_asked_for(
    shop: Shop, name: str, because: str
) -> None:
    made(shop, name)
    report = shop.test(preset_get(name), share_lock="true")
    assert report["facts"]["ground"] == GRACE
    assert because in " ".join(report["weaknesses"])


def test_who_may_choose_a_number_is_named_and_a_preset_proves_nothing(shop: Shop) -> None:
    """message-db lets its role write messages: that role may give a position of its own."""
    preset = preset_get("message-db")
    made(shop, "message-db")
    assert shop.test(preset)["facts"]["ground"] == GRACE  # the share lock was not asked for, and a preset does not
    writer = f"{shop.run.info.dbname}_message_store"
    shop.run.execute(
        f'CREATE ROLE "{writer}" LOGIN; GRANT SELECT, INSERT ON message_store.messages TO "{writer}"'.encode()
    )
    try:
        doubt = f"role '{writer}' may supply the coordinate itself in"
        report = shop.test(preset, share_lock="true")
        assert report["facts"]["ground"] == GRACE and doubt in " ".join(report["weaknesses"])
        report = shop.test(preset, share_lock="true", numbers_are_drawn_in_insert="true")
        assert report["facts"]["ground"] == SHARE_LOCK
        assert "On the owner's word only" in " ".join(report["weaknesses"])
    finally:
        shop.run.execute(f'DROP OWNED BY "{writer}"; DROP ROLE "{writer}"'.encode())


@pytest.mark.spark
def test_rc_70_rows_that_were_deleted_are_no_evidence_of_delivery(shop: Shop, spark: object) -> None:
    """RC-70: the table holds the last one, the sink has the first; of those between nothing can be known."""
    preset = preset_get("masstransit")
    shop.make(preset)
    shop.fill(preset)
    shop.accept(preset, SENT[:1])
    for gone in (1, 2, 3, 4, 6):
        shop.mark(preset, gone)
    found = audit(shop.pipeline(preset))
    assert (found.status, found.premature_count) == ("owed", 0), found.says
    assert "that it is gone is no evidence that it was delivered" in " ".join([found.says, *found.weaknesses])


def test_a_table_said_to_keep_its_rows_that_were_deleted_from_is_a_weakness(shop: Shop) -> None:
    """jaiminho with DELETE_AFTER_SEND, of which its preset cannot know."""
    preset = preset_get("jaiminho")
    made(shop, "jaiminho")
    assert "has counted" not in " ".join(shop.test(preset)["weaknesses"])
    with psycopg.connect(shop.dsn) as relay:
        relay.execute("DELETE FROM jaiminho_event WHERE id IN (2, 4)")
    report = shop.test(preset)
    assert report["is_usable"] and "the server has counted 2 deletions of rows" in " ".join(report["weaknesses"])
    asked = shop.test(preset, retention="deletes_delivered")
    assert "no evidence that it was delivered" in " ".join(asked["weaknesses"])


def test_eventuates_table_without_database_ids_says_what_is_missing_and_how_to_order_it(shop: Shop) -> None:
    """As Flyway makes it: the ids are texts, and there is no dbid."""
    preset = preset_get("eventuate")
    shop.make(preset)
    shop.run.execute("ALTER TABLE eventuate.message DROP COLUMN dbid, ADD PRIMARY KEY (id)")
    problems = " ".join(shop.test(preset)["problems"])
    assert "not the table of Eventuate Tram as the preset has it: it lacks dbid." in problems
    (statement,) = ADDS.findall(" ".join(shop.test(preset, coordinate="insert_number")["problems"]))
    shop.run.execute(statement)
    assert shop.test(preset, coordinate="insert_number")["is_usable"]
