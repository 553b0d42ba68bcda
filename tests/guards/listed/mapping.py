"""Mapped tables and views: what keeps a filter, a join or a view from changing what is owed unseen."""

from __future__ import annotations

from tests.guards.guard import Guard

ENDS = "workers/connectors/postgresql"
READ = "tests/integration/postgresql/test_mapping.py"

GUARDS = (
    Guard(
        "a joined table that may hold a key twice for a moment multiplies rows",
        f"{ENDS}/joining.py",
        " AND i.indimmediate",
        "",
        (f"{READ}::test_a_join_that_could_multiply_rows_is_refused",),
    ),
    Guard(
        "a filter over columns that others may change leaves the ground as it is",
        f"{ENDS}/safe_frontier.py",
        "    if filter_ is None or not moves or safe.given.endswith(TAKEN_IN_LATER):\n",
        "    if True:\n",
        (f"{READ}::test_a_filter_whose_columns_others_may_change_leaves_the_ground_assumed",),
    ),
    Guard(
        "a row without a value is neither in nor out of a filter",
        f"{ENDS}/mapped_rows.py",
        '"{} IS DISTINCT FROM {}"',
        '"{} <> {}"',
        (f"{READ}::test_a_filter_says_which_rows_are_owed",),
    ),
    Guard(
        "a filter means another time every day",
        f"{ENDS}/mapped_rows.py",
        "    if type_ in TIMES and not value[:1].isdigit():\n",
        "    if False:\n",
        (f"{READ}::test_a_filter_that_means_another_time_every_day_is_refused",),
    ),
    Guard(
        "what a person wrote into a filter is run as SQL",
        f"{ENDS}/mapped_rows.py",
        "    return sql.Literal(value)\n",
        """    return sql.SQL(f"'{value}'")\n""",
        (
            "tests/unit/test_mapping.py::test_nothing_of_a_filter_is_sql",
            f"{READ}::test_a_filter_says_which_rows_are_owed",
        ),
    ),
    Guard(
        "what a person wrote into a path is run as SQL",
        f"{ENDS}/mapped_rows.py",
        '    parts = sql.SQL(", ").join(sql.Literal(part) for part in path)\n',
        """    parts = sql.SQL(", ").join(sql.SQL(f"'{part}'") for part in path)\n""",
        (
            f"{READ}::test_a_mapping_that_does_not_fit_is_named_with_what_to_do",
            f"{READ}::test_a_filter_says_which_rows_are_owed",
        ),
    ),
    Guard(
        "a view whose rows are computed is read as a history",
        f"{ENDS}/views.py",
        "    if found := [says for mark, says in COMPUTED.items() if mark in rule[0]]:\n",
        "    if found := []:\n",
        ("tests/integration/postgresql/test_views.py::test_a_view_whose_rows_are_no_rows_of_a_table_is_refused",),
    ),
    Guard(
        "a row that an update brings into the filter is not seen as late",
        f"{ENDS}/table_reader.py",
        "mapped.rows_with_xmin",
        "mapped.rows",
        (f"{READ}::test_a_row_that_the_filter_takes_in_later_is_seen_as_late",),
    ),
    Guard(
        "a partition that the relay's publication leaves out is passed over in silence",
        "workers/connectors/postgresql/publications.py",
        "WHERE published.pubname = p.pubname\n",
        "WHERE true\n",
        (
            "tests/integration/postgresql/test_names_and_coordinates.py::"
            "test_a_partition_that_the_relays_publication_leaves_out_is_named",
        ),
    ),
)
