"""A form in sections: every option of every kind has its place, and what was set or is wrong is in sight."""

from __future__ import annotations

import pytest

from dashboard.form_sections import FIRST, REST, ROWS
from dashboard.forms import EndForm, PipelineForm
from recovery_api.domain.kinds import Kind, kinds_offered
from recovery_api.domain.pipelines import OPTIONS

KINDS = [*kinds_offered("source"), *kinds_offered("sink")]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_option_is_asked_once_and_what_is_needed_is_in_sight(kind: Kind) -> None:
    sections = EndForm(options=kind.options).sections
    asked = [field.name for section in sections for field in section.fields]
    assert sorted(asked) == sorted(["name", *(f"option_{option.name}" for option in kind.options)])
    needed = {f"option_{option.name}" for option in kind.options if option.is_required}
    assert needed <= {field.name for section in sections if section.is_open for field in section.fields}
    assert (sections[0].title, sections[0].fields[0].name) == (FIRST, "name")


def test_nothing_of_a_pipeline_is_a_mere_limit() -> None:
    titles = [section.title for section in PipelineForm(options=OPTIONS.options).sections]
    assert titles[0] == FIRST and REST not in titles and len(titles) > 4


def test_a_section_opens_where_something_in_it_was_set_or_cannot_be_used() -> None:
    (kind,) = (one for one in KINDS if one.name == "postgresql_outbox")
    fresh = {one.title: one.is_open for one in EndForm(options=kind.options).sections}
    assert [title for title, is_open in fresh.items() if is_open] == [FIRST, ROWS]
    edited = EndForm(options=kind.options, initial={"option_grace_seconds": "5"}).sections
    wrong = EndForm({"option_cursor_spelling": "sideways"}, options=kind.options).sections
    assert "What a frontier rests on" in [one.title for one in edited if one.is_open]
    assert "What the relay reads by" in [one.title for one in wrong if one.is_open]
