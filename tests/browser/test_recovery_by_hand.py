"""The left-over incident, from sign-in to certificate, as a person walks it."""

from __future__ import annotations

import io
import secrets
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from recovery_api.models import Recovery, RecoveryOutcome
from tests.browser.conftest import PASSWORD, WAIT_MS, Worker
from tests.demo_worlds import world_drop
from tests.integration.recovery.world import World
from workers.demo.narrator import Narrator
from workers.demo.oracle import opinion_form
from workers.demo.recover import Operator
from workers.demo.visit import incident_leave
from workers.demo.world import World as DemoWorld
from workers.demo.world import world_build

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
INTERACTIONS_AT_MOST = 8


@pytest.fixture
def left(people: None, postgres_admin_dsn: str, tmp_path: Path) -> Iterator[DemoWorld]:
    """The incident that `make demo` leaves: relay killed, events lost behind its cursor, audited, not recovered."""
    prefix = f"t_{secrets.token_hex(3)}_"
    try:
        made = world_build(postgres_admin_dsn, tmp_path / "credentials", prefix)
        with Worker(), tempfile.TemporaryDirectory(prefix="left-") as directory:
            found = incident_leave(made, Path(directory), Operator(made, Narrator(io.StringIO())))
            assert found.counts["lost"] > 0
            yield made
    finally:
        world_drop(postgres_admin_dsn, prefix)


class Hand:
    """A person's mouse: every click, and every field that is filled, is one interaction."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.count = 0

    def click(self, role: str, name: str) -> None:
        self.count += 1
        self.page.get_by_role(role, name=name, exact=True).click()  # type: ignore[arg-type]

    def fill(self, label: str, text: str) -> None:
        self.count += 1
        self.page.get_by_label(label, exact=True).fill(text)


def batch_of(page: Page) -> str:
    """The number on the button that approves."""
    button = page.get_by_role("button", name="Approve")
    expect(button).to_be_enabled(timeout=WAIT_MS)
    return button.inner_text().removeprefix("Approve ").removesuffix(" events")


def test_left_incident_is_recovered_by_mouse_in_few_interactions(
    left: DemoWorld, open_page: Callable[..., Page]
) -> None:
    page = open_page("approver")
    hand = Hand(page)
    hand.click("link", left.pipeline)
    hand.click("button", "Plan recovery")
    count = batch_of(page)
    hand.click("button", f"Approve {count} events")
    hand.fill("Reason", "the relay died, and nobody was there")
    hand.fill("The pipeline's name", left.pipeline)
    hand.click("button", f"Send {count} events to {left.end_name('mail')}")
    expect(page.get_by_role("link", name="Certificate")).to_be_visible(timeout=WAIT_MS)
    expect(page.locator("main .verdict")).to_contain_text("exactly once")
    assert hand.count <= INTERACTIONS_AT_MOST, hand.count

    recovery = Recovery.objects.get(pipeline__name=left.pipeline)
    assert recovery.outcome == RecoveryOutcome.EXACTLY_ONCE and str(recovery.landed_count) == count
    assert opinion_form(left, int(recovery.frontier["0"]["position"])).is_exactly_once

    page.get_by_role("link", name="Certificate").click()
    expect(page.get_by_role("heading", name="Certificate of recovery")).to_be_visible()
    expect(page.locator("main")).to_contain_text(recovery.certificate_digest)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download as JSON").click()
    assert recovery.certificate_digest in Path(download.value.path()).read_text()
    assert page.problems == []  # type: ignore[attr-defined]


def test_incident_is_recovered_by_keyboard_alone(world: World, worker: Worker, open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.goto("/")
    page.wait_for_url("**/sign-in/**")
    page.keyboard.type("ada")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "sign-in" not in url)
    press_on(page, world.pipeline.name)
    page.wait_for_url("**/pipelines/**")
    press_on(page, "Plan recovery")
    batch_of(page)
    press_on(page, "Approve 12 events")
    expect(page.get_by_label("Reason", exact=True)).to_be_visible(timeout=WAIT_MS)
    tab_to(page, lambda focused: focused["id"] == "reason")
    page.keyboard.type("by keyboard")
    page.keyboard.press("Tab")
    page.keyboard.type(world.pipeline.name)
    press_on(page, "Send 12 events to mail")
    expect(page.get_by_role("link", name="Certificate")).to_be_visible(timeout=WAIT_MS)
    press_on(page, "Certificate")
    expect(page.get_by_role("heading", name="Certificate of recovery")).to_be_visible()
    assert len(world.accepted_keys()) == 14


def press_on(page: Page, name: str) -> None:
    """Tab to the link or button of this name, then Enter."""
    tab_to(page, lambda focused: focused["text"] == name)
    page.keyboard.press("Enter")


def tab_to(page: Page, is_it: Callable[[dict[str, str]], bool]) -> int:
    """How often Tab was pressed until the focus was there."""
    seen: list[str] = []
    for presses in range(120):
        focused = page.evaluate(
            "() => ({id: document.activeElement.id, text: document.activeElement.innerText.trim(),"
            " outline: getComputedStyle(document.activeElement).outlineStyle})"
        )
        if is_it(focused):
            assert focused["outline"] != "none", f"{focused} shows no focus"
            return presses
        seen.append(focused["text"][:30])
        page.keyboard.press("Tab")
    raise AssertionError(f"nothing like that is reached by Tab: {seen}")
