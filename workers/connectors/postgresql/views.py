"""A view as a source or a record: only one whose rows are rows of tables, with nothing computed over them.

One law: what the catalogue proves of a table, it does not prove of a view over it. Nothing shows which rows a later
commit could still add to the view at or below a frontier, so its ground is *assumed*, and named.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import psycopg
from psycopg import sql

from recovery_api.domain.errors import Unsuitable
from workers.connectors.postgresql.catalogue import LEAVES, RELKINDS, Table
from workers.connectors.postgresql.identifiers import qualified

RULE = """
SELECT w.ev_action::text, encode(sha256(convert_to(w.ev_action::text, 'UTF8')), 'hex')
FROM pg_rewrite w WHERE w.ev_class = %s::bigint::oid AND w.ev_type = '1'
"""

OVER = """
SELECT DISTINCT c.oid::bigint, n.nspname || '.' || c.relname, c.relkind::text
FROM pg_rewrite w
JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid AND d.refclassid = 'pg_class'::regclass
JOIN pg_class c ON c.oid = d.refobjid AND c.oid <> w.ev_class
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE w.ev_class = %s::bigint::oid AND w.ev_type = '1' ORDER BY 2
"""

POLICED = """
SELECT string_agg(oid::regclass::text, ', ') FROM pg_class WHERE oid::bigint = ANY(%s::bigint[]) AND relrowsecurity
"""

COMPUTED = {
    ":hasAggs true": "an aggregate",
    ":groupClause (": "GROUP BY",
    ":hasWindowFuncs true": "a window function",
    ":distinctClause (": "DISTINCT",
    ":setOperations {": "UNION, INTERSECT or EXCEPT",
    ":hasTargetSRFs true": "a function that returns several rows",
    ":limitCount {": "LIMIT",
    ":limitOffset {": "OFFSET",
    ":tablesample {": "TABLESAMPLE",
}
"""What a rule's tree says where rows are not rows of a table; blanks inside its names are escaped."""


def view_open(connection: psycopg.Connection[Any], table: Table) -> Table:
    """The view with the tables that hold its rows. Raises: Unsuitable for one whose rows are no table's rows."""
    place = f"{table.schema}.{table.name}"
    rule = connection.execute(RULE.encode(), [table.oid]).fetchone()
    over = connection.execute(OVER.encode(), [table.oid]).fetchall()
    if rule is None or not over:
        raise Unsuitable(place, "is a view over no table", "Name the table that holds the rows.")
    for _, name, relkind in over:
        if relkind not in ("r", "p"):
            kind = RELKINDS.get(relkind, relkind)
            remedy = f"Make one view over the tables themselves, or name the table that {name} is made from."
            raise Unsuitable(place, f"is a view over {name}, which is a {kind}", remedy)
    if found := [says for mark, says in COMPUTED.items() if mark in rule[0]]:
        problem = f"is a view with {', '.join(found)}: its rows are computed, and a commit is no row of it"
        raise Unsuitable(place, problem, "Name the table, or a view that only chooses rows and columns of it.")
    leaves = {
        oid: printed for base, _, _ in over for oid, printed, _ in connection.execute(LEAVES.encode(), {"oid": base})
    }
    return replace(table, leaves=leaves, over=tuple(name for _, name, _ in over), definition=rule[1])


def policies_behind_refuse(connection: psycopg.Connection[Any], table: Table) -> None:
    """Nothing, where no policy hides rows behind a view. Raises: Unsuitable.

    Whose rights count is the view's own business (its owner's, or with security_invoker the reader's): the server says.
    """
    row = connection.execute(POLICED.encode(), [list(table.leaves)]).fetchone() if table.is_view else None
    if row is None or not row[0]:
        return
    asked = sql.SQL("EXPLAIN SELECT FROM {}").format(qualified(table.schema, table.name))
    try:
        with connection.transaction(force_rollback=True):
            connection.execute("SET LOCAL row_security = off")
            connection.execute(asked)
    except psycopg.errors.InsufficientPrivilege as error:
        remedy = "Grant BYPASSRLS to whose rights the view uses, or use a role that the policies do not concern."
        raise Unsuitable(
            f"{table.schema}.{table.name}", f"row-level security of {row[0]} hides rows", remedy
        ) from error
