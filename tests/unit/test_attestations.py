"""What people attest: in words that name it, with since when and by whom where that matters, and nothing by default."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from recovery_api.domain.attestations import (
    KINDS,
    LATER_EVENTS_CONFIRMED,
    ONLY_RECOVERER,
    RELAY_DRAINED,
    attestation_parse,
    attestations_missing,
    attestations_stored,
)
from recovery_api.domain.capabilities import Archetype, Capability
from recovery_api.domain.errors import BadInput
from recovery_api.domain.strategies.attested import ATTESTED, attestations_asked
from recovery_api.domain.strategies.fenced import FENCED

NOW = datetime(2026, 11, 28, 18, tzinfo=UTC)
DRAINED = f"{RELAY_DRAINED} since 2026-11-28T17:40:00+00:00 by ada"
TABLE = Capability(Archetype.QUERYABLE, True, True, False, True, True, may_append=True)


def test_what_was_attested_is_kept_as_it_was_given() -> None:
    found = attestation_parse(DRAINED, NOW)
    assert (found.name, found.since, found.by) == (RELAY_DRAINED, NOW - timedelta(minutes=20), "ada")
    assert attestation_parse(found.text()) == found
    assert found.given().endswith("stopped at 2026-11-28 17:40:00 UTC by ada and nothing of it was on its way any more")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("certainly", "is not an attestation"),
        ("", "is not an attestation"),
        (RELAY_DRAINED, "neither since when nor by whom"),
        (f"{RELAY_DRAINED} since yesterday by ada", "is not a time"),
        (f"{RELAY_DRAINED} since 2026-11-28T17:40:00 by ada", "in which time zone"),
        (f"{RELAY_DRAINED} since 2026-11-28T17:40:00+00:00 by ", "neither since when nor by whom"),
        (f"{RELAY_DRAINED} since 2026-11-28T18:00:01+00:00 by ada", "has not come yet"),
        (f"{ONLY_RECOVERER} since 2026-11-28T17:40:00+00:00 by ada", "takes no details"),
    ],
)
def test_an_attestation_that_does_not_say_what_it_must_is_refused(text: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        attestation_parse(text, NOW)


def test_a_stored_text_that_is_no_attestation_counts_for_nothing() -> None:
    assert [one.name for one in attestations_stored([RELAY_DRAINED, "certainly", ONLY_RECOVERER])] == [ONLY_RECOVERER]


def test_nothing_is_attested_by_default_or_by_another_word() -> None:
    asked = (RELAY_DRAINED, ONLY_RECOVERER)
    assert attestations_missing(asked, [DRAINED, ONLY_RECOVERER]) == []
    assert attestations_missing(asked, [ONLY_RECOVERER]) == [KINDS[RELAY_DRAINED]]
    assert attestations_missing(asked, [LATER_EVENTS_CONFIRMED]) == [KINDS[RELAY_DRAINED], KINDS[ONLY_RECOVERER]]


def test_only_a_constraint_that_refuses_late_sends_spares_the_word_about_the_relay() -> None:
    assert attestations_asked(TABLE) == (RELAY_DRAINED, ONLY_RECOVERER)
    assert attestations_asked(replace(TABLE, has_identity_key=False)) == (RELAY_DRAINED, ONLY_RECOVERER)
    assert attestations_asked(replace(TABLE, absorbs_late_sends=True)) == (ONLY_RECOVERER,)


def test_a_strategy_may_ask_for_what_is_known_alone() -> None:
    assert {*ATTESTED.attestations, *FENCED.attestations} <= set(KINDS)
    assert set(attestations_asked(TABLE)) <= set(ATTESTED.attestations)
