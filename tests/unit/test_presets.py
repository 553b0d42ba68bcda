"""Preset files are read strictly, and each fits the kind it names."""

from __future__ import annotations

from pathlib import Path

import pytest

from recovery_api.domain.errors import BadFile, BadInput, UnknownOption
from recovery_api.domain.kinds import kind_get, options_parse
from recovery_api.presets import DIRECTORY, Answer, Mark, preset_get, preset_names, preset_read
from recovery_api.presets.page import page
from recovery_api.services.presets import preset_fill, preset_filled
from workers.connectors.postgresql.ordered import NEW_COLUMN

LIBRARIES = {
    "axon", "brighter", "cap", "debezium", "django-outbox-pattern", "eventuate", "jaiminho", "marten", "masstransit",
    "message-db", "nservicebus", "pg-boss", "pg-trx-outbox", "rails-event-store", "river", "spring-modulith",
    "watermill", "wolverine", "masstransit-inbox", "eventuate-inbox", "nservicebus-inbox",
}  # fmt: skip
"""The libraries that were promised."""

TEXT = (DIRECTORY / "marten.toml").read_text(encoding="utf-8")
CONNECTION = {"connection": "env:FENCEPOST_END_SHOP"}


def test_every_promised_library_has_a_preset() -> None:
    assert set(preset_names()) >= LIBRARIES


@pytest.mark.parametrize("name", preset_names())
def test_the_options_of_a_preset_are_options_of_its_kind(name: str) -> None:
    preset = preset_get(name)
    kind = kind_get(preset.kind)
    assert kind.end == preset.end
    if preset.answer is Answer.REFUSED:
        assert not preset.options and preset.example is None
        return
    needed = {"table": preset.table.name} if preset.table.is_named_by_user else {}
    assert preset.example is not None
    parsed = options_parse(kind, {**CONNECTION, **preset.options, **needed, **preset.example.given})
    assert {name: parsed[name] for name in preset.options} == dict(preset.options)
    assert (parsed["schema"], parsed["table"]) == (preset.table.schema, preset.table.name)
    assert preset.added in ("", NEW_COLUMN) and (not preset.added or preset.options["coordinate"] == [NEW_COLUMN])


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_names_where_its_facts_are_from(name: str) -> None:
    documented = preset_get(name).documented
    assert documented.repository.startswith("https://github.com/") and documented.version and documented.files


@pytest.mark.parametrize("name", preset_names())
def test_what_is_deleted_on_delivery_is_never_exactly_once(name: str) -> None:
    preset = preset_get(name)
    if preset.delivered.mark in (Mark.DELETES, Mark.EMPTIES):
        assert preset.answer in (Answer.OF_WHAT_IS_KEPT, Answer.REFUSED)
    if preset.answer is Answer.OF_WHAT_IS_KEPT:
        assert preset.options["retention"] == "deletes_delivered"
        assert preset.example is not None
        found = (preset.example.owed, preset.example.complete, preset.example.share_lock)
        assert found == ("owed", "nothing_owed_of_kept", "")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("colour = 'blue'\n" + TEXT, "colour"),
        (TEXT.replace('answer = "audits"', 'answer = "perhaps"'), "perhaps"),
        (TEXT.replace('primary_key = ["seq_id"]', 'primary_key = ["sequence"]'), "sequence"),
        (TEXT.replace('primary_key = ["seq_id"]', 'primary_key = "seq_id"'), "primary_key"),
        (TEXT.replace('says = "mt_events', 'told = "mt_events'), "told"),
        (TEXT.replace("[delivered]", "[delivered]\nlater = 1"), "later"),
        (TEXT.replace('advice = "', 'end = "'), "TOML"),
        ('library = "x"', "is missing"),
    ],
)
def test_a_file_that_is_not_as_declared_is_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(BadFile, match=named):
        preset_read(text, "marten")


def test_options_that_are_given_win_and_the_rest_is_filled_and_told() -> None:
    found = preset_fill("source", None, "marten", {**CONNECTION, "schema": "shop", "key": "tenant_id"})
    assert found.kind == "postgresql_outbox"
    assert (found.options["schema"], found.options["key"], found.options["table"]) == ("shop", "tenant_id", "mt_events")
    assert set(found.filled) == {"table", "coordinate", "event_id", "content", "committed_at"}
    assert found.options["preset"] == "marten"
    assert set(preset_filled(found.options)) == set(found.filled)


def test_without_a_preset_nothing_is_filled() -> None:
    found = preset_fill("source", "postgresql_outbox", None, CONNECTION)
    assert (found.options, found.filled) == (CONNECTION, {})


@pytest.mark.parametrize(
    ("end", "kind", "name", "given", "error", "says"),
    [
        ("source", None, "martin", {}, UnknownOption, "marten"),
        ("source", None, "message_db", {}, UnknownOption, "message-db"),
        ("source", "memory", "marten", {}, BadInput, "postgresql_outbox"),
        ("sink", None, "marten", {}, BadInput, "preset of source"),
        ("source", None, "masstransit-inbox", {}, BadInput, "preset of sink"),
        ("source", None, "pg-boss", {}, BadInput, "job queue"),
        ("source", None, "river", {}, BadInput, "job queue"),
        ("source", None, "watermill", {}, BadInput, "watermill_orders"),
        ("source", None, "marten", {"preset": "axon"}, BadInput, "Give it once"),
        ("source", None, None, {}, BadInput, "or a preset"),
    ],
)
def test_a_preset_that_cannot_serve_is_refused_with_what_to_do(
    end: str, kind: str | None, name: str | None, given: dict[str, str], error: type[BadInput], says: str
) -> None:
    with pytest.raises(error, match=says):
        preset_fill(end, kind, name, given)


def test_the_document_is_made_from_the_files() -> None:
    """`make presets` writes it."""
    assert (Path(__file__).parents[2] / "docs" / "presets.md").read_text(encoding="utf-8") == page()
