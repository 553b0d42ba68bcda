"""Each preset against its library's table, made, filled and delivered from in a real PostgreSQL, then audited."""

from __future__ import annotations

import pytest
from django.utils import timezone
from psycopg import sql

from recovery_api.presets import Answer, preset_get, preset_names
from recovery_api.services.ends import source_update
from tests.integration.presets.library_table import LOST, SENT, Shop, audit, place

SOURCES = [name for name in preset_names("source") if preset_get(name).answer is not Answer.REFUSED]
AUDITED = [name for name in SOURCES if preset_get(name).answer is not Answer.UNKNOWN]


def made(shop: Shop, name: str) -> None:
    """The library's table, with the column that the test asks for where it lacks one."""
    preset = preset_get(name)
    shop.make(preset)
    if preset.added:
        shop.run.execute(
            sql.SQL("ALTER TABLE {} ADD COLUMN {} bigint GENERATED ALWAYS AS IDENTITY").format(
                place(preset), sql.Identifier(preset.added)
            )
        )
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
def test_where_the_library_takes_away_what_it_delivered_no_verdict_is_clean(
    shop: Shop, spark: object, name: str
) -> None:
    preset = preset_get(name)
    made(shop, name)
    pipeline = None
    for rows in (SENT, LOST):
        shop.deliver(preset, rows)
        pipeline = pipeline or shop.pipeline(preset)
        found = audit(pipeline)
        assert (found.status, found.exit_code, found.premature_count) == ("unknown", 3, 0), found.says
        assert "cannot be told from one that never was" in " ".join([found.says, *found.weaknesses])


@pytest.mark.parametrize("name", [name for name in SOURCES if not preset_get(name).added])
def test_the_librarys_table_as_it_is_can_serve(shop: Shop, name: str) -> None:
    made(shop, name)
    report = shop.test(preset_get(name))
    assert (report["is_usable"], report["problems"]) == (True, [])
    assert report["facts"]["columns"] == [column.name for column in preset_get(name).columns]


@pytest.mark.parametrize("name", ["marten", "watermill", "axon"])
def test_a_preset_on_the_wrong_table_says_which_columns_are_missing(shop: Shop, name: str) -> None:
    preset = preset_get(name)
    shop.run.execute('CREATE TABLE public.other (id bigint, "type" text, "timestamp" timestamptz)')
    report = shop.test(preset, table="other", schema="public")
    assert not report["is_usable"]
    lacking = ", ".join(column.name for column in preset.columns if column.name not in ("id", "type", "timestamp"))
    wholly = f"lacks {lacking}" if name != "watermill" else "has none of its columns"
    assert any(preset.library in problem and wholly in problem for problem in report["problems"]), report["problems"]


def test_an_older_table_of_the_library_serves_where_the_mapped_columns_are_there(shop: Shop) -> None:
    """A preset is no more than options: what serves is nobody's business."""
    shop.run.execute(
        "CREATE TABLE mt_events (seq_id bigint PRIMARY KEY, id uuid, stream_id uuid, data jsonb, timestamp timestamptz)"
    )
    assert shop.test(preset_get("marten"))["is_usable"]
