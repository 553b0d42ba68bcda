"""Views as sources and records: read like tables, on a ground that no table's proof carries over to."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

from recovery_api.domain.errors import Unsuitable
from tests.integration.postgresql.mapped_tables import Bench, accepted, history, lane, rows_of, spelled
from tests.pins import pin
from workers.connectors.readings import Width

TABLES = """
CREATE TABLE events (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind text, doc jsonb);
INSERT INTO events (kind, doc) VALUES ('a', '{"k": "x"}'), ('b', '{"k": "y"}'), ('a', '{"k": "z"}');
CREATE VIEW outbox AS SELECT id, doc ->> 'k' AS key, doc FROM events WHERE kind = 'a'
"""


def test_a_view_is_read_like_a_table(bench: Bench) -> None:
    bench.run.execute(TABLES)
    source = bench.source(key="key", content="doc")
    report = source.test()
    assert report.is_usable, report.problems
    assert (report.facts["kind_of_table"], report.facts["rows"]) == ("view", 2)
    assert [row["key"] for row in history(source, Width.FULL)] == ["x", "z"]
    assert spelled(source, history(source)) == ["1", "3"]


def test_a_views_ground_is_assumed_and_names_its_tables(bench: Bench) -> None:
    bench.run.execute(TABLES)
    table = lane(pin(bench.source("events", share_lock=True))).safe
    view = pin(bench.source(share_lock=True))
    assert table.standing.value == "proven", table
    assert lane(view).safe.standing.value == "assumed"
    said = " ".join(view.weaknesses)
    assert "is a view over public.events" in said and "does not carry over" in said
    assert "a view keeps no xmin" in said


def test_a_transaction_that_writes_the_views_table_holds_its_frontier_back(bench: Bench) -> None:
    bench.run.execute(TABLES)
    writer = bench.session()
    writer.execute("INSERT INTO events (kind) VALUES ('a')")
    safe = lane(pin(bench.source())).safe
    assert safe.coordinate is None and "may commit below the head" in safe.says
    writer.rollback()
    assert lane(pin(bench.source())).safe.coordinate is not None


def test_another_definition_of_a_view_is_another_source(bench: Bench) -> None:
    bench.run.execute(TABLES)
    before = lane(pin(bench.source())).safe.incarnation
    assert before and before == lane(pin(bench.source())).safe.incarnation
    bench.run.execute("CREATE OR REPLACE VIEW outbox AS SELECT id, doc ->> 'k' AS key, doc FROM events")
    assert lane(pin(bench.source())).safe.incarnation != before


@pytest.mark.parametrize(
    ("view", "says"),
    [
        ("SELECT * FROM inner_view", "is a view over public.inner_view, which is a view"),
        ("SELECT * FROM stored", "is a view over public.stored, which is a materialized view"),
        ("SELECT max(id) AS id, kind FROM events GROUP BY kind", "an aggregate, GROUP BY"),
        ("SELECT id, kind FROM events GROUP BY id, kind", "GROUP BY"),
        ("SELECT DISTINCT id FROM events", "DISTINCT"),
        ("SELECT id FROM events UNION ALL SELECT id FROM events", "UNION"),
        ("SELECT row_number() OVER () AS id FROM events", "a window function"),
        ("SELECT generate_series(1, 3)::bigint AS id FROM events", "several rows"),
        ("SELECT id FROM events ORDER BY id LIMIT 5", "LIMIT"),
        ("SELECT id FROM events TABLESAMPLE BERNOULLI (50)", "TABLESAMPLE"),
        ("SELECT id FROM (SELECT id FROM events ORDER BY id LIMIT 5) AS few", "LIMIT"),
        ("SELECT 1::bigint AS id", "is a view over no table"),
        ("SELECT n AS id FROM generate_series(1, 3) AS n", "is a view over no table"),
    ],
)
def test_a_view_whose_rows_are_no_rows_of_a_table_is_refused(bench: Bench, view: str, says: str) -> None:
    bench.run.execute("CREATE TABLE events (id bigint PRIMARY KEY, kind text)")
    bench.run.execute("CREATE VIEW inner_view AS SELECT * FROM events; CREATE MATERIALIZED VIEW stored AS TABLE events")
    bench.run.execute(f"CREATE VIEW outbox AS {view}")
    source = bench.source()
    report = source.test()
    assert not report.is_usable and says in " ".join(report.problems)
    with pytest.raises(Unsuitable):
        pin(source)


def test_names_that_look_like_a_marks_text_do_not_make_a_view_computed(bench: Bench) -> None:
    bench.run.execute('CREATE TABLE events (id bigint PRIMARY KEY, ":hasAggs true" text)')
    bench.run.execute(
        """CREATE VIEW outbox AS SELECT id, ':groupClause (' AS ":limitCount {" FROM events WHERE ":hasAggs true" IS NULL"""
    )
    report = bench.source().test()
    assert report.is_usable, report.problems


def test_ranges_of_a_view_cover_it_once_and_use_its_tables_index(bench: Bench) -> None:
    bench.run.execute(TABLES)
    bench.run.execute("INSERT INTO events (kind) SELECT 'a' FROM generate_series(1, 2000); ANALYZE")
    source = bench.source()
    with source.hold_snapshot() as reading:
        assert reading.handle["has_index"]
        ranges = source.split(reading, "0", 4)
        found = [rows_of(source.read_history(reading, one, Width.COORDINATE)) for one in ranges]
    assert len(ranges) == 4 and all(found)
    assert sorted(row["position"] for rows in found for row in rows) == [1, *range(3, 2004)]


def test_a_view_without_an_index_behind_its_coordinate_says_that_it_is_scanned(bench: Bench) -> None:
    bench.run.execute("CREATE TABLE events (id bigint, doc jsonb); CREATE VIEW outbox AS SELECT * FROM events")
    report = bench.source().test()
    assert report.is_usable and not report.facts["has_coordinate_index"]
    assert any("scans the whole table" in one for one in report.weaknesses)


def test_row_level_security_behind_a_view_is_not_read_around(bench: Bench) -> None:
    role = f"{bench.run.info.dbname}_reader"
    bench.run.execute(f"CREATE ROLE \"{role}\" LOGIN PASSWORD 'secret'")
    bench.run.execute("CREATE TABLE events (id bigint PRIMARY KEY); ALTER TABLE events ENABLE ROW LEVEL SECURITY")
    bench.run.execute(
        f'CREATE VIEW outbox WITH (security_invoker) AS TABLE events; GRANT SELECT ON events, outbox TO "{role}"'
    )
    report = bench.source(dsn=make_conninfo(bench.dsn, user=role, password="secret")).test()
    assert not report.is_usable and "row-level security" in " ".join(report.problems)


def test_a_view_can_be_a_record(bench: Bench) -> None:
    bench.run.execute(TABLES)
    sink: Any = bench.sink("outbox", content="doc")
    assert spelled(sink, accepted(sink)) == ["1", "3"]
    assert sink.test().is_usable


UUID_KEYED = 'CREATE TABLE "OutboxMessage" ("MessageId" uuid PRIMARY KEY, "SentTime" timestamptz, "Body" text)'


@pytest.mark.parametrize("coordinate", ["MessageId", "SentTime", "Body"])
def test_an_outbox_without_an_ordered_column_is_told_the_statement_that_adds_one(bench: Bench, coordinate: str) -> None:
    bench.run.execute(UUID_KEYED)
    bench.run.execute(
        """INSERT INTO "OutboxMessage" SELECT gen_random_uuid(), now(), '{}' FROM generate_series(1, 3)"""
    )
    (problem,) = bench.source("OutboxMessage", coordinate).test().problems
    statement = (
        'ALTER TABLE "public"."OutboxMessage" ADD COLUMN "insert_number" bigint GENERATED ALWAYS AS IDENTITY UNIQUE;'
    )
    assert statement in problem
    assert "not of their commit" in problem and "as they lie on disk" in problem
    bench.run.execute(statement)
    source = bench.source("OutboxMessage", "insert_number", event_id="MessageId", content="Body", content_format="text")
    assert source.test().is_usable and len(history(source)) == 3
    assert "Columns here that can: 'insert_number'" in " ".join(
        bench.source("OutboxMessage", coordinate).test().problems
    )


def test_the_statement_for_a_partitioned_table_is_one_that_it_takes(bench: Bench) -> None:
    bench.run.execute("CREATE TABLE outbox (id uuid, at date) PARTITION BY RANGE (at)")
    bench.run.execute(
        "CREATE TABLE part PARTITION OF outbox DEFAULT; INSERT INTO outbox VALUES (gen_random_uuid(), now())"
    )
    (problem,) = bench.source().test().problems
    statement = problem.split("This adds one: ")[1].split(" It numbers")[0]
    bench.run.execute(statement)
    report = bench.source(coordinate="insert_number").test()
    assert report.is_usable and report.facts["has_coordinate_index"]
