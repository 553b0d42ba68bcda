"""An incident's figures come from readings, and its post-mortem holds what people wrote as text."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest

from recovery_api.domain.errors import Refused
from recovery_api.domain.incidents import (
    Done,
    Figures,
    Line,
    PipelineFigures,
    Reading,
    Told,
    move_check,
    pipeline_figures,
    post_mortem,
)
from recovery_api.domain.outcomes import Status

THREE = dt.datetime(2026, 3, 1, 3, 0, tzinfo=dt.UTC)


def at(minutes: int) -> dt.datetime:
    return THREE + dt.timedelta(minutes=minutes)


def read(minutes: int, status: Status, lost: int = 0, hazards: int = 0, pipeline: str = "mail") -> Reading:
    return Reading(pipeline, at(minutes), status, lost, hazards)


def test_first_owed_is_the_first_reading_after_the_last_clean_one_before_it_was_noticed() -> None:
    readings = [
        read(-30, Status.OWED, 9),  # an earlier incident
        read(-20, Status.EXACTLY_ONCE),
        read(-15, Status.UNKNOWN),
        read(-10, Status.OWED, 3),
        read(-5, Status.OWED, 44),
        read(20, Status.OWED, 40),
        read(30, Status.UNKNOWN),
        read(40, Status.EXACTLY_ONCE_GIVEN),
        read(50, Status.EXACTLY_ONCE),
        read(0, Status.HAZARD, 1, 7, pipeline="another"),
    ]
    found = pipeline_figures("mail", readings[::-1], THREE, at(99))
    assert (found.last_clean_at, found.first_owed_at, found.well_at) == (at(-20), at(-10), at(40))
    assert (found.owed_at_most, found.hazards_at_most) == (44, 0)
    assert found.well_words == "exactly once at f, given …"


def test_well_again_is_told_with_what_expired_since() -> None:
    well = replace(read(40, Status.EXACTLY_ONCE), evidence_until=at(90))
    readings = [read(-10, Status.OWED, 3), well]
    assert pipeline_figures("mail", readings, THREE, at(89)).well_words == "exactly once at f"
    later = pipeline_figures("mail", readings, THREE, at(90))
    assert later.well_words == "exactly once at f then; now unknown (evidence expired)" and later.well_at == at(40)


def test_what_came_back_after_it_was_well_is_not_well() -> None:
    readings = [read(-10, Status.OWED, 3), read(10, Status.EXACTLY_ONCE), read(20, Status.OWED, 1)]
    assert pipeline_figures("mail", readings, THREE, at(99)).well_at is None
    assert pipeline_figures("mail", readings[:2], THREE, at(99)).well_at == at(10)
    untouched = pipeline_figures("mail", [read(-10, Status.EXACTLY_ONCE), read(5, Status.UNKNOWN)], THREE, at(99))
    assert untouched.first_owed_at is None and untouched.well_at is None


def test_a_whole_incident_is_well_once_all_that_was_owed_is() -> None:
    mail = PipelineFigures("mail", None, at(-10), at(40), "exactly once at f", 44, 0)
    other = PipelineFigures("other", None, at(-5), None, "", 2, 1)
    calm = PipelineFigures("calm", at(-5), None, None, "", 0, 0)
    both = Figures((mail, other, calm), THREE, None, 0, 0, 0, ())
    assert (both.first_owed_at, both.well_at, both.events_touched) == (at(-10), None, 47)
    assert Figures((mail, calm), THREE, None, 0, 0, 0, ()).well_at == at(40)


def test_a_post_mortem_says_the_figures_and_runs_nothing_that_somebody_wrote() -> None:
    evil = "<script>alert(1)</script> | **bold** [x](javascript:1)\nnext"
    mail = PipelineFigures("mail", at(-20), at(-10), at(40), "exactly once at f", 44, 0)
    figures = Figures((mail,), at(-2), Done(at(3), "ada", "ada asked for a plan."), 44, 1, 0, ("anna",))
    told = Told(
        evil, "closed", "critical", "", "ada", THREE, at(60), evil, figures, [Line(at(0), "mail", "noted", "ada", evil)]
    )
    text = post_mortem(told)
    assert "| First seen owed or wrong | 2026-03-01 02:50:00 |" in text
    assert "| Noticed | 2026-03-01 02:58:00, 8 min later |" in text
    assert "| First action | 2026-03-01 03:03:00, 5 min after it was noticed, by ada: ada asked for a plan. |" in text
    assert "| Well again | 2026-03-01 03:40:00, 50 min later |" in text
    assert "| Events touched | 44 |" in text and "| Approved by | anna |" in text
    assert "<script" not in text and "\\*\\*bold\\*\\*" in text and "\\[x\\]" in text
    assert all(line.count(" | ") >= 1 for line in text.splitlines() if line.startswith("| 2026"))


def test_a_closed_incident_is_only_opened_again() -> None:
    move_check("x", "open", "closed")
    move_check("x", "closed", "open")
    with pytest.raises(Refused, match="After that it may be: open"):
        move_check("x", "closed", "mitigated")
