"""A kind answers everything about itself: no generic room knows one by its name."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from recovery_api.domain.grounds import Catalogue, Column, Sequence, numbers_step
from recovery_api.domain.kinds import (
    deciding,
    kind_get,
    kind_installed,
    kinds_offered,
    options_parse,
    retention_of,
    spelling_of,
)
from recovery_api.domain.kinds.base import KINDS, gaps_of

PROJECT = Path(__file__).parents[2]
ROOMS = ("recovery_api", "workers", "dashboard", "templates", "manage.py", "fencepost")
KNOW_KINDS = (
    "recovery_api/domain/kinds/",
    "recovery_api/presets/",
    "recovery_api/migrations/",
    "workers/connectors/",
    "workers/demo/",
    "workers/drills/stage.py",
)
"""Where a kind may be called by its name: itself, its connector, what describes an end for it."""
NAMED = re.compile(rf"(?<![\w.])[\"']?({'|'.join(KINDS)})(?!\w)")
QUOTED = re.compile(rf"[\"']({'|'.join(KINDS)})[\"']")
PLAIN_WORDS = {"memory"}
"""Kinds whose name is a word of its own: looked for in quotes only."""


def _sources() -> list[Path]:
    found = [PROJECT / room for room in ROOMS if (PROJECT / room).is_file()]
    for room in ROOMS:
        found += [path for path in (PROJECT / room).rglob("*") if path.suffix in (".py", ".html", ".js", ".css")]
    return [path for path in found if not path.relative_to(PROJECT).as_posix().startswith(KNOW_KINDS)]


def names_kind(text: str) -> set[str]:
    """The kinds that a source calls by name."""
    return (set(NAMED.findall(text)) - PLAIN_WORDS) | set(QUOTED.findall(text))


def test_no_generic_room_calls_a_kind_by_its_name() -> None:
    sources = _sources()
    assert len(sources) > 250
    named = {path.relative_to(PROJECT).as_posix(): names_kind(path.read_text(encoding="utf-8")) for path in sources}
    assert {path: names for path, names in named.items() if names} == {}


def test_a_kind_called_by_its_name_would_be_found() -> None:
    assert names_kind('{% if kind == "postgresql_kit" %}') == {"postgresql_kit"}
    assert names_kind("from recovery_api.domain.kinds import postgresql_table") == {"postgresql_table"}
    assert names_kind("its memory, NOT_OFFERED = ('memory',)") == {"memory"}
    assert names_kind("keeps it in memory") == set()


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_says_what_pages_and_documents_ask_it(name: str) -> None:
    kind = kind_get(name)
    assert kind.name == name and kind.label and kind.says.endswith(".")
    assert kind.is_in_process or (kind.shows and kind.example)
    assert not kind.example or options_parse(kind, kind.example)
    if kind.installer is not None:
        module = importlib.import_module(kind.installer.module)
        assert all(hasattr(module, one) for one in ("kit_script", "kit_put", "database_of"))


def test_the_kinds_that_may_be_registered_leave_out_one_process_memory() -> None:
    assert [kind.name for kind in kinds_offered("sink") if kind.connector.startswith("workers.")] == [
        "postgresql_kit",
        "postgresql_table",
    ]
    assert kind_installed() is kind_get("postgresql_kit")


def test_a_kind_is_asked_with_an_ends_own_options() -> None:
    example = kind_get("postgresql_outbox").example
    numbered = {**example, "coordinate": ["id"], "coordinate_spelling": "bigint"}
    assert spelling_of("postgresql_outbox", example) == "xid8_bigint"
    assert spelling_of("memory", {"name": "a"}) == "bigint"
    assert retention_of("postgresql_outbox", example) == "keeps"
    assert retention_of("postgresql_outbox", {**example, "retention": "purges"}) == "purges"
    assert gaps_of("postgresql_outbox", example) is None
    gaps = gaps_of("postgresql_outbox", numbered)
    assert gaps is not None and gaps.says(1, True).startswith("was never committed")


def _column(sequence: Sequence | None, is_root: bool = True, default: str | None = None) -> Column:
    return Column("outbox", is_root, False, "bigint", True, "", default, sequence)


def test_numbers_are_drawn_only_where_a_sequence_is_seen_to_draw_them() -> None:
    """A client's own numbers (snowflakes, microseconds) have nothing missing between them."""
    by_one, by_ten = Sequence(1, "s", 1, 1, False), Sequence(1, "s", 1, 10, False)

    def step(width: int, *columns: Column) -> int | None:
        return numbers_step(Catalogue(1, "id", width, False, columns, (), ()))

    assert step(1, _column(by_one)) == 1 and step(1, _column(by_ten)) == 10
    assert step(1, _column(None)) is None
    assert step(2, _column(by_one)) is None
    assert step(1, _column(by_one), _column(None, is_root=False)) == 1, "a partition draws nothing of its own"
    assert step(1, _column(by_one), _column(Sequence(2, "t", 1, 1, False), is_root=False)) is None


def test_what_a_record_is_met_by_decides_what_a_verdict_is_of() -> None:
    """A reading by ids judges neither contents nor what is premature: it supersedes no reading by coordinate."""
    before = {
        "connection": "env:FENCEPOST_END_MAIL",
        "table": "inbox",
        "coordinate": ["position"],
        "content": "content",
    }
    by_id = {
        **{name: before[name] for name in ("connection", "table")},
        "identity": "event_id",
        "event_id": "id",
        "is_append_only": True,
    }
    assert deciding("postgresql_table", before) != deciding("postgresql_table", by_id)
    options = {option.name: option for option in kind_get("postgresql_table").options}
    assert all(options[name].decides for name in ("identity", "consumer", "accepted_when", "lifetime_seconds"))
