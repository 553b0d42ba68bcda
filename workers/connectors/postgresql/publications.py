"""Publications that feed a relay: which partitions of the table they leave out (RC-32).

One law: it is what the catalogue shows now, a candidate for why events were never emitted, and enters no verdict.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg

from workers.connectors.postgresql.catalogue import Table

NAMED_AT_MOST = 5
"""So many partitions a sentence names."""

PUBLICATIONS = """
WITH leaves AS (SELECT oid AS leaf, relname FROM pg_class WHERE oid = ANY(%(leaves)s::bigint[]::oid[])),
published AS (
    SELECT t.pubname, c.oid AS relation
    FROM pg_publication_tables t
    JOIN pg_namespace n ON n.nspname = t.schemaname
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename
)
SELECT p.pubname::text, p.pubinsert, p.pubviaroot, array(
    SELECT l.relname::text FROM leaves l
    WHERE NOT EXISTS (
        SELECT FROM published WHERE published.pubname = p.pubname
        AND (published.relation = l.leaf OR published.relation IN (SELECT relid FROM pg_partition_ancestors(l.leaf)))
    )
    ORDER BY 1
)
FROM pg_publication p
WHERE %(name)s::text IS NULL OR p.pubname = %(name)s::text
ORDER BY 1
"""
"""Of each publication the leaves that it lacks, by themselves and by whatever they are partitions of."""


def publication_notes(connection: psycopg.Connection[Any], options: Mapping[str, Any], table: Table) -> list[str]:
    """What keeps rows of the table from a relay that reads by a publication: of the one that is named in `publication`; where none
    is, of every one that has some of its partitions and not all. None of them for a plain table: nothing says which is meant."""
    name = options.get("publication")
    if table.is_view or (name is None and table.relkind != "p"):
        return []
    rows = connection.execute(PUBLICATIONS.encode(), {"leaves": list(table.leaves), "name": name}).fetchall()
    if name is not None and not rows:
        return [f"This database has no publication {name!r}: a relay that reads by it gets nothing."]
    said = []
    for publication, has_inserts, is_via_root, lacking in rows:
        if name is not None and not has_inserts:
            said.append(f"Publication {publication!r} publishes no inserts: a relay that reads by it never emits one.")
        if lacking and (name is not None or len(lacking) < len(table.leaves)):
            said.append(_lacking_says(publication, table, lacking))
        elif name is not None and table.relkind == "p" and not is_via_root:
            said.append(
                f"Publication {publication!r} tells changes of {table.schema}.{table.name} under the names of its partitions:"
                " a router that goes by the table's own name drops them. SET (publish_via_partition_root = true) tells"
                " them under that."
            )
    return said


def _lacking_says(publication: str, table: Table, lacking: list[str]) -> str:
    of, count = f"{table.schema}.{table.name}", len(lacking)
    if table.relkind != "p":
        return f"Publication {publication!r} leaves out {of}: a relay that reads by it never emits what is committed there."
    more = f" and {count - NAMED_AT_MOST:,} more" if count > NAMED_AT_MOST else ""
    return (
        f"Publication {publication!r} leaves out {count:,} of the {len(table.leaves):,} partitions of {of}"
        f" ({', '.join(lacking[:NAMED_AT_MOST])}{more}): a relay that reads by it never emits what is committed there."
        f" Publish the table itself, and partitions that are made later come along."
    )
