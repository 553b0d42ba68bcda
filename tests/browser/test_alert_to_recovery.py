"""From the alert's link to the finished recovery, by mouse and by keyboard, counted: at most eight interactions.

The sign-in before, and what the second person does, are apart. An interaction is a click, a field that is filled, the page loaded
again, or, by keyboard, one link or button that is gone to and pressed. The keys on the way to it are counted by themselves.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from recovery_api.models import Alert, Recovery, RecoveryOutcome
from tests.browser.conftest import WAIT_MS, Worker
from tests.browser.test_recovery_by_hand import INTERACTIONS_AT_MOST, Hand, tab_to
from tests.integration.recovery.world import World
from workers.alerts.pager import Pager

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
KEYS_AT_MOST = 120
"""On the whole way: Tab, Enter, and a typed field as one."""


class Keyboard:
    """A person without a mouse. `keys`: every press, and a text that is typed as one."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.count = self.keys = 0

    def click(self, role: str, name: str) -> None:
        self.count += 1
        self.keys += 1 + tab_to(self.page, lambda focused: focused["text"] == name)
        self.page.keyboard.press("Enter")

    def fill(self, label: str, text: str) -> None:
        self.count += 1
        wanted = self.page.get_by_label(label, exact=True).get_attribute("id")
        self.keys += 1 + tab_to(self.page, lambda focused: focused["id"] == wanted)
        self.page.keyboard.type(text)


@pytest.mark.parametrize("way", [Hand, Keyboard], ids=["mouse", "keyboard"])
def test_at_most_eight_interactions_lead_from_the_alerts_link_to_the_finished_recovery(
    way: type[Hand] | type[Keyboard], world: World, open_page: Callable[..., Page]
) -> None:
    world.pipeline.requires_other_approver = True
    world.pipeline.save()
    world.audit()
    Pager().evaluate()
    alert = Alert.objects.get(cause="owed")
    name = world.pipeline.name
    with Worker():
        page = open_page("ada")
        page.goto(f"/alerts/{alert.pk}/")
        person = way(page)
        person.click("link", f"See {name}")
        expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()
        person.click("button", "Plan recovery")
        expect(page.get_by_text("another approver has to look at it")).to_be_visible(timeout=WAIT_MS)

        second = open_page("grace")
        second.goto(page.url)
        second.get_by_role("button", name="Approve 12 events").click()
        expect(second.get_by_label("Reason", exact=True)).to_be_visible()

        page.reload()
        person.count += 1
        person.fill("Reason", "the relay died at 03:12")
        person.fill("The pipeline's name", name)
        person.click("button", "Send 12 events to mail")
        expect(page.get_by_role("link", name="Certificate", exact=True)).to_be_visible(timeout=WAIT_MS)
    assert person.count <= INTERACTIONS_AT_MOST
    if isinstance(person, Keyboard):
        assert person.keys <= KEYS_AT_MOST
    recovery = Recovery.objects.get()
    assert (recovery.outcome, len(world.accepted_keys())) == (RecoveryOutcome.EXACTLY_ONCE, 14)
    Pager().evaluate()
    alert.refresh_from_db()
    assert alert.resolved_at is not None
    assert page.problems == []  # type: ignore[attr-defined]
