"""The screen at 3 a.m., by keyboard: few tabs to a decision, focus where the work is, and what was kept found again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from recovery_api.models import LastLook
from recovery_api.services.looking import VISIT
from tests.browser.conftest import axe_violations
from tests.browser.test_pages import SIDEWAYS
from tests.integration.recovery.world import World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

TABS_AT_MOST = 10
FOCUSED = "() => document.activeElement.id || document.activeElement.innerText.trim()"


def tabs_to(page: Page, wanted: str) -> int:
    """How often Tab is pressed until this id or text has the focus."""
    for count in range(1, 60):
        page.keyboard.press("Tab")
        if page.evaluate(FOCUSED) == wanted:
            return count
    raise AssertionError(f"{wanted} is not reached by Tab")


def test_an_approval_is_few_tabs_away_and_focus_stays_where_the_work_is(
    world: World, open_page: Callable[..., Page]
) -> None:
    plan = world.plan()
    page = open_page("ada", permissions=["clipboard-read", "clipboard-write"])
    page.goto(reverse("plan", args=[plan.id]))
    tabs = tabs_to(page, "Skip to the content")
    page.keyboard.press("Enter")
    tabs += tabs_to(page, "To the approval")
    page.keyboard.press("Enter")
    tabs += tabs_to(page, "Approve 12 events")
    assert tabs <= TABS_AT_MOST
    page.keyboard.press("Enter")
    page.wait_for_url("**#apply")
    assert tabs_to(page, "reason") == 1, "what is done next follows at once"

    audit = world.audit()
    finding = audit.listing.order_by("number").first()
    place = f"audit={audit.id}&lane=0&at={world.coordinate('k0')}"
    assert finding is not None
    page.goto(reverse("findings", args=[audit.id]))
    numbers = page.locator("td a > code.coordinate").all_inner_texts()
    page.locator("td a", has_text=numbers[1]).first.focus()
    for number in (numbers[1], numbers[2]):
        page.keyboard.press("c")
        expect(page.locator("#said")).to_have_text(f"Copied {number}")
        assert page.evaluate("navigator.clipboard.readText()") == number
    page.goto(f"{reverse('finding')}?{place}")
    page.get_by_label("Why it may stay").fill("asked the shop")
    page.keyboard.press("Enter")
    expect(page.locator("#leave")).to_be_focused()
    expect(page.locator("section", has=page.locator("#leave"))).to_contain_text("Left by ada")
    assert axe_violations(page) == [] and page.problems == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("look", [{}, {"viewport": {"width": 375, "height": 800}, "color_scheme": "dark"}], ids=str)
def test_a_filter_is_kept_and_what_changed_is_told(world: World, open_page: Callable[..., Page], look: dict) -> None:
    page = open_page("ada", **look)
    page.goto("/?status=unknown")
    page.get_by_label("Keep this filter as").fill("not known, mine")
    page.keyboard.press("Enter")
    chip = page.get_by_role("link", name="not known, mine")
    expect(chip).to_have_attribute("aria-current", "true")
    LastLook.objects.update(seen_at=timezone.now() - 2 * VISIT)
    world.audit()
    page.goto("/")
    expect(page.locator(".since")).to_contain_text("1 verdict changed")
    page.locator("details.health summary").click()
    expect(page.locator("details.health")).to_contain_text("nobody looks, because no pager runs")
    assert axe_violations(page) == []
    assert page.evaluate(SIDEWAYS) <= 0
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Delete the saved filter not known, mine").click()
    expect(chip).to_have_count(0)
    assert page.problems == []  # type: ignore[attr-defined]
