"""What stays however old it is, and which ages can be set."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest

from recovery_api.domain.errors import BadInput
from recovery_api.domain.retention import SETTINGS, Ages, Parts, Piece, ages_parse, parts_keep

NOW = dt.datetime(2026, 6, 1, 12, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)
AGES = Ages(90 * DAY, 400 * DAY, 400 * DAY)
OLD = Parts(Piece.AUDIT, NOW - 100 * DAY)
DEFAULTS = {name: days for name, (days, _, _) in SETTINGS.items()}
PINS = {
    "is_newest": "its pipeline has no newer audit",
    "is_newest_certificate": "its pipeline's newest certificate rests on them",
    "unfinished": "a recovery that is not finished goes by them",
    "is_waiting": "the plan can still be approved or applied",
    "of_open_item": "an open item was seen in them",
    "of_ledger": "the ledger goes by them",
    "is_base": "the next image audit goes by the base that is kept with them",
}


def test_age_alone_lets_parts_go_to_the_minute() -> None:
    young = replace(OLD, ended_at=NOW - 90 * DAY + dt.timedelta(minutes=1))
    kept = parts_keep(young, AGES, NOW)
    assert (kept.stays, kept.is_pinned, kept.says) == (True, False, "Kept until 2026-06-01 12:01 UTC, by age.")
    gone = parts_keep(young, AGES, NOW + dt.timedelta(minutes=1))
    assert (gone.stays, gone.says) == (False, "Due to go since 2026-06-01 12:01 UTC, by age.")


def test_newest_of_each_sort_is_named_by_its_sort() -> None:
    said = [parts_keep(replace(OLD, piece=piece, is_newest=True), AGES, NOW).says for piece in Piece]
    assert said == [f"Pinned: its pipeline has no newer {one}." for one in ("audit", "plan", "image audit")]


@pytest.mark.parametrize("pin", PINS)
def test_what_something_rests_on_stays_however_old_and_says_why(pin: str) -> None:
    kept = parts_keep(replace(OLD, ended_at=NOW - 4000 * DAY, **{pin: True}), AGES, NOW)
    assert (kept.stays, kept.is_pinned, kept.says) == (True, True, f"Pinned: {PINS[pin]}.")


def test_evidence_that_a_certificate_needs_stays_until_it_says_and_not_a_day_longer() -> None:
    needed = replace(OLD, of_certificate=True, evidence_until=NOW + 5 * DAY)
    kept = parts_keep(needed, AGES, NOW)
    assert kept.is_pinned and kept.says == "Pinned: a certificate needs them until 2026-06-06 12:00 UTC."
    assert not parts_keep(needed, AGES, NOW + 5 * DAY).stays


def test_certificate_whose_evidence_ends_early_or_says_nothing_keeps_its_parts_by_age() -> None:
    for until in (None, NOW - 200 * DAY, NOW - 99 * DAY):
        assert not parts_keep(replace(OLD, of_certificate=True, evidence_until=until), AGES, NOW).stays
        young = replace(OLD, ended_at=NOW - 10 * DAY, of_certificate=True, evidence_until=until)
        assert parts_keep(young, AGES, NOW).stays


def test_clock_that_jumped_back_keeps_what_it_makes_younger() -> None:
    assert parts_keep(OLD, AGES, NOW - 50 * DAY).stays
    assert parts_keep(replace(OLD, ended_at=NOW + DAY), AGES, NOW).stays


def test_ages_that_are_set_are_those_that_count() -> None:
    assert ages_parse(DEFAULTS) == AGES


@pytest.mark.parametrize(
    ("name", "days", "says"),
    [
        ("FENCEPOST_EVIDENCE_DAYS", 0, "is 0 days for parts of evidence. Set it to 1 to 36,600."),
        ("FENCEPOST_EVIDENCE_DAYS", -3, "is -3 days"),
        ("FENCEPOST_RECORDS_DAYS", 29, "Set it to 30 to 36,600."),
        ("FENCEPOST_RECORDS_DAYS", 60, "parts would outlive what tells of them. Set it to at least 90."),
        ("FENCEPOST_HISTORY_DAYS", 31, "for the history. Set it to 32 to 36,600."),
        ("FENCEPOST_HISTORY_DAYS", 10**9, "is 1000000000 days"),
    ],
)
def test_age_that_cannot_be_used_is_refused_with_what_can(name: str, days: int, says: str) -> None:
    with pytest.raises(BadInput) as refused:
        ages_parse({**DEFAULTS, name: days})
    assert str(refused.value).startswith(f"{name}: ") and says in str(refused.value)
