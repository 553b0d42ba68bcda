"""May this be purged: yes only where every ground for it was seen."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.kinds.postgresql_purge import purge_sql
from recovery_api.domain.purging import Answer, Look, Open, Owing, Said, answers_together, purge_said

NOW = dt.datetime(2026, 3, 1, 3, 0, tzinfo=dt.UTC)
LOST = Open(Coordinate(40), "Event 40 is lost.", "Recover it.")


def look(minutes: float, at: int, *, standing: bool = True, unknown: bool = False, lowest: Open | None = None) -> Look:
    return Look(NOW - dt.timedelta(minutes=minutes), Coordinate(at), str(at), standing, unknown, lowest)


def said(looks: Sequence[Look], below: int = 50, **more: Any) -> Said:
    owing = Owing("mail", "letters", dt.timedelta(minutes=15), looks, **more)
    return purge_said(owing, Coordinate(below), str(below), NOW)


def test_what_a_fresh_audit_found_clear_may_go() -> None:
    assert said([look(1, 50)]).answer is Answer.YES
    lasts = replace(look(1, 50), evidence_until=NOW + dt.timedelta(seconds=1))
    assert said([lasts]).answer is Answer.YES


@pytest.mark.parametrize(
    "looks",
    [
        [],
        [look(1, 49)],
        [look(1, 50, standing=False)],
        [look(16, 50)],
        [look(1, 50, unknown=True)],
        [look(5, 50), look(1, 10, unknown=True)],
        [replace(look(5, 50), evidence_until=NOW)],
    ],
    ids=["no audit", "not so far", "superseded", "stale", "unknown", "a later one could not tell", "expired"],
)
def test_without_evidence_it_is_unknown(looks: Sequence[Look]) -> None:
    found = said(looks)
    assert found.answer is Answer.UNKNOWN and "audit mail" in found.remedy


def test_a_restored_sink_makes_it_unknown() -> None:
    assert said([look(1, 50)], restored="it lies behind.").answer is Answer.UNKNOWN


def test_what_is_open_at_or_below_it_forbids_it_and_what_lies_above_does_not() -> None:
    assert said([look(1, 50, lowest=LOST)], 40).answer is Answer.NO
    assert said([look(1, 50, lowest=LOST)], 39).answer is Answer.YES


def test_a_later_audit_that_reached_less_far_still_forbids() -> None:
    assert said([look(5, 50), look(1, 45, lowest=LOST)]).answer is Answer.NO


def test_open_work_forbids_what_it_sends_or_may_send() -> None:
    assert said([look(1, 50)], work=[Open(Coordinate(60), "x", "y")]).answer is Answer.YES
    assert said([look(1, 50)], work=[Open(None, "x", "y")]).answer is Answer.NO


def test_a_restore_window_asks_for_an_audit_that_is_as_old() -> None:
    window = dt.timedelta(hours=1)
    found = said([look(1, 50)], restore_window=window)
    assert (found.answer, found.until) == (Answer.NO, NOW + dt.timedelta(minutes=59))
    assert said([look(1, 50), look(61, 50, standing=False)], restore_window=window).answer is Answer.YES


def test_what_was_open_in_between_begins_the_window_anew() -> None:
    looks = [look(1, 50), look(61, 50, standing=False), look(30, 50, standing=False, lowest=LOST)]
    found = said(looks, restore_window=dt.timedelta(hours=1))
    assert (found.answer, found.until) == (Answer.NO, NOW + dt.timedelta(minutes=59))


def test_the_worst_pipeline_counts() -> None:
    yes, no, unknown = (Said("p", answer, "") for answer in (Answer.YES, Answer.NO, Answer.UNKNOWN))
    assert answers_together([yes, unknown, no]) is Answer.NO
    assert [answer.exit_code for answer in (Answer.YES, Answer.NO, Answer.UNKNOWN)] == [0, 1, 3]


def test_a_filter_that_looks_into_json_gets_no_transaction() -> None:
    options = {"schema": "public", "table": "o", "coordinate": ["id"], "filter": "body->kind = 'a'"}
    assert purge_sql(options, Coordinate(1), {"count": "1", "positions": "3"}, "an audit") == ""


def test_a_body_that_holds_its_own_quotes_gets_other_ones() -> None:
    options = {"schema": "public", "table": "$purge$", "coordinate": ["id"], "filter": "state = 'it''s 5%'"}
    text = purge_sql(options, Coordinate(1), {"count": "1", "positions": "3"}, "the audit of 100%")
    assert text.startswith("DO $ppurge$") and text.endswith("$ppurge$;")
    assert "\"state\" = 'it''s 5%'" in text and "100%% counted 1" in text
