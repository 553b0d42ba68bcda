"""What a mapped value and a row filter may be written as, and what is refused before any database is asked."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from psycopg import sql

from recovery_api.domain.errors import BadInput
from recovery_api.domain.kinds import kind_get, options_parse
from recovery_api.domain.kinds.postgresql_mapping import condition_check, filter_says
from recovery_api.domain.mapping import Comparison, Condition, Term, filter_parse, filter_text, term_parse
from workers.connectors.postgresql.mapped_rows import filter_sql


def parsed(**options: Any) -> dict[str, Any]:
    given = {"connection": "env:FENCEPOST_END_X", "table": "outbox", "coordinate": "id", **options}
    return options_parse(kind_get("postgresql_outbox"), given)


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("payload", Term("payload")),
        ("payload->order->id", Term("payload", ("order", "id"))),
        ("=letters", Term(text="letters")),
        ("=", Term(text="")),
        ("=a->b", Term(text="a->b")),
        ("joined.name", Term("name", is_joined=True)),
        ("joined.data->id", Term("data", ("id",), True)),
        ("list->0->id", Term("list", ("0", "id"))),
    ],
)
def test_a_mapped_value_reads_as_its_grammar_says(text: str, term: Term) -> None:
    assert term_parse("key", text) == term


@pytest.mark.parametrize("name", ["=id", "joined.name", "a->b", "joined.a->b", "=a->b", "->"])
def test_a_column_that_really_has_such_a_name_wins(name: str) -> None:
    assert term_parse("key", name, own=["id", "a", name], joined=["name", "a"]) == Term(name)


def test_a_column_that_is_not_there_stays_a_column_to_be_named_in_the_refusal() -> None:
    assert term_parse("key", "kye", own=["id", "key"]) == Term("kye")
    assert term_parse("key", "joined.kye->a", own=["id"], joined=["key"]) == Term("kye", ("a",), True)


def test_the_longest_column_name_wins_over_a_path() -> None:
    assert term_parse("key", "a->b->c", own=["a", "a->b"]) == Term("a->b", ("c",))
    assert term_parse("key", "joined.a->b->c", own=["a->b"], joined=["a", "a->b"]) == Term("a->b", ("c",), True)


@pytest.mark.parametrize("text", ["->a", "a->", "a->->b", "payload->>'id'", "joined.", "joined.->a"])
def test_what_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="Write"):
        term_parse("key", text)


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        ("state = sent", [Condition("state", Comparison.EQUAL, ("sent",))]),
        ("state='sent and gone'", [Condition("state", Comparison.EQUAL, ("sent and gone",))]),
        ("n!=3", [Condition("n", Comparison.OTHER, ("3",))]),
        (
            "n > -5 AND n<=7",
            [Condition("n", Comparison.MORE, ("-5",)), Condition("n", Comparison.LESS_OR_EQUAL, ("7",))],
        ),
        ("k in (a, 'b, c')", [Condition("k", Comparison.IN, ("a", "b, c"))]),
        ("x is null and y is not null", [Condition("x", Comparison.IS_NULL), Condition("y", Comparison.IS_NOT_NULL)]),
        ("x IS NULL", [Condition("x", Comparison.IS_NULL)]),
        ('"my col" = a', [Condition("my col", Comparison.EQUAL, ("a",))]),
        ("payload->type = a", [Condition("payload->type", Comparison.EQUAL, ("a",))]),
        ("at >= 2024-01-01T00:00:00+00", [Condition("at", Comparison.MORE_OR_EQUAL, ("2024-01-01T00:00:00+00",))]),
        ("is = null_value", [Condition("is", Comparison.EQUAL, ("null_value",))]),
    ],
)
def test_a_filter_is_read_as_conditions(text: str, conditions: list[Condition]) -> None:
    assert list(filter_parse("filter", text)) == conditions


@pytest.mark.parametrize(
    "text",
    [
        "state",
        "state =",
        "state = null",
        "state = is null",
        "state like 'a%'",
        "state = 'a' or state = 'b'",
        "state = 'a' and",
        "state = 'a' state = 'b'",
        "k in a",
        "k in ()",
        "k in ('a'",
        "k in ('a' 'b')",
        "state = 'unclosed",
        'state = "sent"',
        "= 'a'",
        "state = 'a'; DROP TABLE outbox",
        "lower(state) = 'a'",
        "state = (SELECT 'a')",
        "state = 'a\x00'",
        "   ",
    ],
)
def test_what_is_no_filter_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        filter_parse("filter", text)


NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=12)
VALUES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)
NULLS = (Comparison.IS_NULL, Comparison.IS_NOT_NULL)
CONDITIONS = st.one_of(
    st.builds(
        Condition,
        NAMES,
        st.sampled_from([one for one in Comparison if one not in (*NULLS, Comparison.IN)]),
        st.tuples(VALUES),
    ),
    st.builds(Condition, NAMES, st.just(Comparison.IN), st.lists(VALUES, min_size=1, max_size=3).map(tuple)),
    st.builds(Condition, NAMES, st.sampled_from(NULLS)),
)


@given(st.lists(CONDITIONS, min_size=1, max_size=4))
def test_a_filter_says_what_it_was_read_from(conditions: list[Condition]) -> None:
    assert list(filter_parse("filter", filter_text(conditions))) == conditions


@example([Condition('a" OR "b', Comparison.EQUAL, ("x' OR true --",))])
@given(st.lists(st.builds(Condition, NAMES, st.just(Comparison.EQUAL), st.tuples(VALUES)), min_size=1, max_size=3))
def test_nothing_of_a_filter_is_sql(conditions: list[Condition]) -> None:
    """Names are identifiers and values are literals: with those taken out, what is left is the same for every filter."""
    types = {condition.column: {"type": "text"} for condition in conditions}
    left = filter_sql(conditions, types).as_string()
    for condition in conditions:
        name, value = sql.Identifier(condition.column).as_string(), sql.Literal(condition.values[0]).as_string()
        assert f'"event_row".{name} = {value}' in left
        left = left.replace(f'"event_row".{name} = {value}', "?", 1)
    assert left == " AND ".join("?" for _ in conditions)


def test_two_spellings_of_a_filter_are_one() -> None:
    assert filter_says(parsed(filter="state=sent AND n != 3")) == filter_says(
        parsed(filter="state = 'sent' and n <> '3'")
    )
    assert filter_says(parsed()) is None


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"joined_on": {"a": "b"}}, "without a joined table"),
        ({"joined_table": "orders"}, "joined_on: is missing"),
        ({"key": "a" * 64}, "cannot be a name"),
        ({"key": "payload->>'id'"}, "is SQL"),
        ({"filter": "state"}, "ends before"),
        ({"filter": f"{'a' * 64} = 1"}, "cannot be a name"),
    ],
)
def test_a_mapping_that_cannot_be_is_refused_before_a_database_is_asked(options: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        parsed(**options)


def test_a_long_path_is_no_long_name() -> None:
    assert parsed(key=f"payload->{'a' * 80}")["key"] == f"payload->{'a' * 80}"


def test_a_filter_compares_the_tables_own_columns_and_paths_only_as_what_they_are() -> None:
    (order,) = filter_parse("filter", "payload->n < 3")
    with pytest.raises(BadInput, match="10 comes before 9"):
        condition_check(order, Term("payload", ("n",)))
    (other,) = filter_parse("filter", "joined.state = sent")
    with pytest.raises(BadInput, match="no column of the table itself"):
        condition_check(other, Term("state", is_joined=True))
    condition_check(order, Term("payload->n"))
