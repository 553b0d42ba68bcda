"""What two people and two tabs do to one another, and what changes while somebody looks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from recovery_api.models import Recovery, RecoveryState
from recovery_api.services.plans import plan_lapse
from tests.browser.conftest import WAIT_MS, Worker
from tests.integration.recovery.world import World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


SHIFTS = """() => {
    window.shifted = [];
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries())
            window.shifted.push([entry.value, entry.sources.map((s) => s.node && s.node.outerHTML ? s.node.outerHTML.slice(0, 120) : "")]);
    }).observe({type: "layout-shift", buffered: true});
}"""


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_moves_while_a_recovery_is_followed(
    world: World, worker: Worker, open_page: Callable[..., Page], width: int
) -> None:
    worker.hold()
    recovery = world.request(world.approve(world.plan()))
    page = open_page("ada", viewport={"width": width, "height": 900})
    page.goto(reverse("recovery", args=[recovery.id]))
    page.evaluate(SHIFTS)
    polls: list[str] = []
    page.on("response", lambda answer: polls.append(answer.url) if "phase=" in answer.url else None)
    seen: list[Any] = []
    for _ in range(2):  # however quickly it ends, it was followed while it waited
        page.wait_for_event("response", lambda answer: "phase=" in answer.url, timeout=WAIT_MS)
    with page.expect_navigation(timeout=WAIT_MS):  # the last poll loads the page again
        worker.free()
        while Recovery.objects.get(id=recovery.id).state != RecoveryState.FINISHED:
            seen = page.evaluate("() => window.shifted || []") or seen
            page.wait_for_timeout(100)
    expect(page.get_by_role("link", name="Certificate")).to_be_visible(timeout=WAIT_MS)
    assert len(polls) >= 2
    assert seen == []


def test_progress_survives_a_reload_and_shows_in_another_tab(
    world: World, worker: Worker, open_page: Callable[..., Page]
) -> None:
    worker.hold()
    recovery = world.request(world.approve(world.plan()))
    first, second = open_page("ada"), open_page("grace")
    address = reverse("recovery", args=[recovery.id])
    first.goto(address)
    second.goto(address)
    first.get_by_label("Reason", exact=True).fill("let me look first")
    first.get_by_role("button", name="Pause").click()
    for page in (first, second):  # the other tab is told by its own poll
        expect(page.get_by_role("button", name="Resume")).to_be_visible(timeout=WAIT_MS)
    first.reload()
    expect(first.locator("main")).to_contain_text("ada asked it to pause: let me look first")
    second.get_by_label("Reason", exact=True).fill("go on")
    second.get_by_role("button", name="Resume").click()
    worker.free()
    for page in (first, second):
        expect(page.get_by_role("link", name="Certificate")).to_be_visible(timeout=WAIT_MS)


def test_double_click_and_two_people_apply_one_recovery(world: World, open_page: Callable[..., Page]) -> None:
    plan = world.approve(world.plan())
    pages = [open_page("ada"), open_page("grace")]
    for page in pages:
        page.goto(reverse("plan", args=[plan.id]))
        page.get_by_label("Reason", exact=True).fill("two of us")
        page.get_by_label("The pipeline's name", exact=True).fill(world.pipeline.name)
    for page in pages:
        page.get_by_role("button", name="Send 12 events").dblclick()
        page.wait_for_url("**/recoveries/**")
    recovery = Recovery.objects.get()
    assert [page.url.rstrip("/").rsplit("/", 1)[-1] for page in pages] == [str(recovery.id)] * 2
    assert recovery.intents.count() == 1


def test_approving_a_plan_that_lapsed_meanwhile_is_refused_with_a_page_that_says_so(
    world: World, open_page: Callable[..., Page]
) -> None:
    plan = world.plan()
    page = open_page("ada")
    page.goto(reverse("plan", args=[plan.id]))
    plan_lapse(plan, because="the sink's options changed", actor="admin", now=timezone.now())
    page.get_by_role("button", name="Approve 12 events").click()
    expect(page.get_by_role("alert").or_(page.locator(".problem"))).to_contain_text("it is lapsed, not ready")
    expect(page.get_by_role("button", name="Plan again")).to_be_visible()


def test_a_page_whose_pipeline_is_retired_meanwhile_says_so(world: World, open_page: Callable[..., Page]) -> None:
    audit = world.audit()
    page = open_page("ada")
    page.goto(reverse("audit", args=[audit.id]))
    world.pipeline.retired_at = timezone.now()
    world.pipeline.save()
    page.get_by_role("button", name="Audit again").click()
    expect(page.locator("main")).to_contain_text("is not here")
    page.goto(reverse("audit", args=[audit.id]))
    expect(page.get_by_role("button", name="Audit again")).to_be_disabled()
    expect(page.locator("main")).to_contain_text("The pipeline is retired")
