from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from recovery_api.domain.alerts.addresses import address_refusal, networks_parse, url_check
from recovery_api.domain.alerts.causes import Cause, Severity
from recovery_api.domain.alerts.outbox import DeliveryState, answer_of, next_after
from recovery_api.domain.alerts.quiet import About, Muted, Mutes, Told, is_to_be_told, mute_of, until_check
from recovery_api.domain.alerts.routing import Route, Way, spare_next, way_of
from recovery_api.domain.errors import BadInput
from recovery_api.domain.labels import labels_parse

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_an_answer_that_will_never_change_pages_the_next_route_at_once_and_any_other_after_two_attempts() -> None:
    gone = next_after(answer_of(410, ""), 1, NOON, NOON)
    assert gone.state is DeliveryState.REFUSED and gone.is_spare_due
    first, second = (next_after(answer_of(503, ""), n, NOON, NOON) for n in (1, 2))
    assert first.state is second.state is DeliveryState.WAITING
    assert (first.is_spare_due, second.is_spare_due) == (False, True)
    assert first.due_at is not None and second.due_at is not None and first.due_at < second.due_at
    assert next_after(answer_of(503, ""), 40, NOON, NOON + timedelta(days=1)).state is DeliveryState.GIVEN_UP


def test_a_destination_that_asks_for_time_gets_it_but_not_for_ever() -> None:
    assert next_after(answer_of(429, "", "60"), 1, NOON, NOON).due_at == NOON + timedelta(seconds=60)
    assert next_after(answer_of(429, "", "999999999"), 1, NOON, NOON).due_at == NOON + timedelta(minutes=5)


PRIVATE = """127.0.0.1 10.0.0.1 169.254.169.254 192.168.1.1 ::1 fe80::1%eth0 fd00::1 0.0.0.0 224.0.0.1 ::ffff:10.0.0.1
64:ff9b::a00:1 2002:a00:1:: 100.64.0.1"""


@pytest.mark.parametrize("text", PRIVATE.split())
def test_private_addresses_are_refused_in_every_spelling_unless_they_are_named(text: str) -> None:
    assert address_refusal(text, [])
    assert not address_refusal(text, networks_parse(["0.0.0.0/0", "::/0"]))


@pytest.mark.parametrize(
    "url",
    ["ftp://x.example", "https://", "https://me:secret@x.example/", "javascript:alert(1)", "https://x.example/a b"],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(BadInput):
        url_check(url, "address")


def test_a_mute_has_an_end_and_a_label_no_line_break() -> None:
    with pytest.raises(BadInput, match="has an end"):
        until_check(None, NOON, "mute")
    with pytest.raises(BadInput):
        until_check(NOON + timedelta(days=365), NOON, "mute")
    for labels in ({"team": "a\nb"}, {"team": ""}, {"te am": "a"}, {"team": "\u202ea"}):
        with pytest.raises(BadInput):
            labels_parse(labels)


def test_a_mute_names_what_it_keeps_silent_and_nothing_else() -> None:
    about = About("owed", "orders", "shop", ("mail",), {"team": "a"})
    for by, value in (
        (Mutes.PIPELINE, "orders"),
        (Mutes.SOURCE, "shop"),
        (Mutes.SINK, "mail"),
        (Mutes.LABEL, "team=a"),
    ):
        mute = Muted("1", by, value, NOON)
        assert mute_of(about, [mute], NOON - timedelta(seconds=1)) == mute
        assert mute_of(about, [mute], NOON) is None
        other = Muted("1", by, f"{value}x", NOON)
        assert mute_of(about, [other], NOON - timedelta(seconds=1)) is None
    assert mute_of(about, [Muted("1", Mutes.PIPELINE, "orders", NOON, "hazard")], NOON - timedelta(seconds=1)) is None


def test_a_worse_state_breaks_through_an_acknowledgement_and_not_through_a_mute() -> None:
    open_ = {"is_open": True, "is_flapping": False}
    assert not is_to_be_told(Told.NOTHING, is_acknowledged=True, is_muted=False, is_broken_through=False, **open_)
    assert is_to_be_told(Told.FIRING, is_acknowledged=True, is_muted=False, is_broken_through=True, **open_)
    assert not is_to_be_told(Told.NOTHING, is_acknowledged=False, is_muted=True, is_broken_through=True, **open_)
    assert not is_to_be_told(Told.FIRING, is_acknowledged=False, is_muted=False, is_broken_through=False, **open_)


def test_the_first_route_that_fits_is_told_and_the_rest_are_spares() -> None:
    routes = [
        Route(1, 1, destination=10, least=Severity.CRITICAL, labels={"team": "a"}, goes_on=True),
        Route(2, 2, destination=20, least=Severity.ERROR),
        Route(3, 3, destination=30),
        Route(4, 4, destination=40, causes=frozenset({"kit_outdated"})),
    ]
    assert way_of(Cause.OWED, Severity.CRITICAL, {"team": "a"}, routes) == Way((10, 20), (30,))
    assert way_of(Cause.OWED, Severity.CRITICAL, {}, routes) == Way((20,), (30,))
    assert way_of(Cause.KIT_OUTDATED, Severity.WARNING, {}, routes) == Way((30,), (40,))
    assert way_of(Cause.OWED, Severity.WARNING, {}, routes[:2]).is_nobody
    assert spare_next(Way((20,), (30, 40)), [20, 30]) == 40 and spare_next(Way((20,), (30,)), [20, 30]) is None
