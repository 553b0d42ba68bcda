"""Every page looked at by axe-core, light and dark, narrow and wide; keys, tokens and fields."""

from __future__ import annotations

import json
import shlex
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import get_resolver, reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from recovery_api.domain.access import PAGES
from recovery_api.domain.coordinates import Coordinate
from recovery_api.selectors.findings import FindingFilter
from recovery_api.services.drills import drill_request
from recovery_api.services.ends import connection_test_request
from recovery_api.services.event_reads import event_read_request
from recovery_api.services.omission_previews import omissions_preview
from recovery_api.services.plans import plan_request
from recovery_api.services.tokens import token_create
from tests.browser.conftest import axe_violations
from tests.browser.things import TriedEnd, alert_make, image_make, incident_made, omission_make
from tests.integration.recovery.world import World, run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

NOT_PAGES = {
    "event-content",
    "plan-events",
    "recovery-certificate-json",
    "incident-post-mortem",
    "metrics",
    "healthz",
    "readyz",
}
"""Routes that give a file, or a part of a page, and no page."""
FRAGMENTS = {"pipeline-work", "sink-reading", "sink-drills", "source-test", "sink-test", "sink-install-first"}


SIDEWAYS = "document.documentElement.scrollWidth - window.innerWidth"


@pytest.fixture
def addresses(world: World) -> Callable[[], dict[str, str]]:
    """Everything there can be to look at: an audit, a plan, a recovery with its certificate, an event that was read."""

    def make() -> dict[str, str]:
        audit = world.audit()
        preview = omissions_preview(world.pipeline, FindingFilter(), actor="ada", now=timezone.now())
        recovery = world.recover()
        plan = world.plan()
        omission_make(world)
        image_make(world)
        first = audit.listing.order_by("number").first()
        at = Coordinate(first.position, first.ordinal)
        intent = run(event_read_request(world.pipeline, "0", at, actor="ada", now=timezone.now(), wake=False))
        source, sink = (
            run(
                connection_test_request(
                    actor="ada", now=timezone.now(), end=end.word, kind=end.kind, options=end.options, wake=False
                )
            )
            for end in (
                TriedEnd("source", world.pipeline.source.kind, world.source_options),
                TriedEnd("sink", world.pipeline.sink.kind, world.sink_options),
            )
        )
        _, drilled = drill_request(world.pipeline.sink, actor="ada", now=timezone.now(), wake=False)
        assert (run(drilled).result or {})["verdict"] == "passed"
        person = User.objects.get(username="approver")
        alert = alert_make(world)
        token, _ = token_create(person, "runbook", ["approver"], held=["approver"], actor="ada", now=timezone.now())
        arguments: dict[str, list[Any]] = {
            "source-found": [source.id],
            "sink-found": [sink.id],
            "audit": [audit.id],
            "findings": [audit.id],
            "plan": [recovery.plan_id],
            "recovery": [recovery.id],
            "recovery-certificate": [recovery.id],
            "work": [intent.id],
            "token-revoke": [token.id],
            "alert": [alert.pk],
            "destination": ["on call"],
            **{key: [world.pipeline.source.name] for key in ("source", "source-edit", "source-retire")},
            **{key: [world.pipeline.sink.name] for key in ("sink", "sink-edit", "sink-retire", "sink-install")},
            **{key: [world.pipeline.name] for key in ("pipeline", "pipeline-edit", "pipeline-retire")},
            "pipeline-timeline": [world.pipeline.name],
            "pipeline-freeze": [world.pipeline.name],
            "pipeline-runbook": [world.pipeline.name, "owed"],
            "runbook": ["source_growth"],
            "incident": [incident_made(world).id],
            "omissions": [world.pipeline.name],
            "omission-preview": [world.pipeline.name, preview.pk],
        }
        there = {name for name in get_resolver().reverse_dict if isinstance(name, str)}
        names = [name for name, method in PAGES if method == "GET" and name in there]
        found = {
            name: reverse(name, args=arguments.get(name, [])) for name in names if name not in NOT_PAGES | FRAGMENTS
        }
        found["finding"] += f"?audit={audit.id}&lane=0&at={world.coordinate('k0')}"
        found["may be purged"] = f"{found['source']}?below={world.coordinate('k0')}"
        found["plan nothing owed"] = reverse("plan", args=[plan.id])
        found["not found"] = reverse("plan", args=[audit.id])
        return found

    return make


BAR_LINES = """() => Math.floor(
    document.querySelector("header.bar").offsetHeight / (document.querySelector("nav.main a")?.offsetHeight ?? Infinity)
)"""
CHARTS_CUT = """() => [...document.querySelectorAll(".plot .main-svg")].map(
    (svg) => svg.getBoundingClientRect().height - svg.closest(".plot").getBoundingClientRect().height
).filter((cut) => cut > 1)"""


def test_axe_finds_nothing_on_any_page_and_none_scrolls_sideways(
    addresses: Callable[[], dict[str, str]], open_page: Callable[..., Page]
) -> None:
    found = addresses()
    seeing, configuring, nobody = open_page("approver"), open_page("admin"), open_page()
    wrong: dict[str, list[str]] = {}
    for name, address in {**found, "sign-in": reverse("sign-in")}.items():
        page = (
            configuring if name.endswith(("-add", "-edit", "-retire", "-install", "-found", "-everybody")) else seeing
        )
        page = nobody if name == "sign-in" else page
        said = wrong.setdefault(name, [])
        page.emulate_media(color_scheme="light")
        page.goto(address)
        said += axe_violations(page)
        page.emulate_media(color_scheme="dark")
        said += [f"dark: {violation}" for violation in axe_violations(page)]
        for width in (320, 375, 768, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            if page.evaluate(SIDEWAYS) > 0:
                page.goto(address)  # a chart is drawn again a moment after its window changed
            if (over := page.evaluate(SIDEWAYS)) > 0:
                said.append(f"scrolls {over} px sideways at {width}")
            if (lines := page.evaluate(BAR_LINES)) > {768: 2, 1280: 1}.get(width, lines):
                said.append(f"the bar has {lines} lines at {width}")
        if page.locator(".plot").count():
            page.wait_for_timeout(500)  # charts follow a window a moment after it changed
            said += [f"a chart is {cut} px higher than its box" for cut in page.evaluate(CHARTS_CUT)]
    assert {name: said for name, said in wrong.items() if said} == {}


def test_single_keys_lead_about_and_are_never_taken_from_who_types(
    people: None, open_page: Callable[..., Page]
) -> None:
    page = open_page("approver")
    page.goto("/work/")
    page.keyboard.press("?")
    dialog = page.locator("#keys")
    expect(dialog).to_be_visible()
    assert axe_violations(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("i")
    page.wait_for_url("**/incidents/")
    page.get_by_label("What people will call it").fill("")
    page.keyboard.type("g p/?")
    assert page.get_by_label("What people will call it").input_value() == "g p/?" and page.url.endswith("/incidents/")
    page.locator("h1").click()
    page.keyboard.press("?")
    dialog.get_by_role("checkbox").check()
    dialog.get_by_role("button", name="Close").click()
    page.keyboard.press("?")
    expect(dialog).to_be_hidden()
    page.locator("details.person summary").click()
    page.get_by_role("button", name="Keyboard").click()
    expect(dialog.get_by_role("checkbox")).to_be_checked()
    assert page.problems == []  # type: ignore[attr-defined]


def test_axe_finds_nothing_on_a_plan_to_decide_and_a_recovery_that_runs(
    world: World, open_page: Callable[..., Page]
) -> None:
    plan = world.plan()
    page = open_page("approver")
    page.goto(reverse("plan", args=[plan.id]))
    assert axe_violations(page) == []
    world.approve(plan)
    page.reload()
    assert axe_violations(page) == []
    page.goto(reverse("recovery", args=[world.request(plan).id]))
    assert axe_violations(page) == []


def test_token_is_made_on_the_page_called_with_its_own_example_and_revoked(
    people: None, open_page: Callable[..., Page]
) -> None:
    page = open_page("operator")
    page.goto("/")
    page.locator("details.person summary").click()
    page.get_by_role("link", name="API tokens").click()
    page.get_by_label("Name").fill("runbook")
    page.get_by_role("button", name="Make it").click()
    assert axe_violations(page) == []
    words = shlex.split(page.locator("section", has_text="shown this once").locator("code").inner_text())
    assert words[:3] == ["curl", "-sS", "-H"] and page.locator("#secret").input_value() in words[3]
    name, _, value = words[3].partition(": ")
    example = urllib.request.Request(words[4], headers={name: value})
    with urllib.request.urlopen(example, timeout=10) as answer:
        assert json.load(answer)["token"]["name"] == "runbook"
    page.reload()  # sends the form again, as a person would by mistake
    expect(page.locator(".problem")).to_contain_text("This form was sent already")
    page.get_by_role("link", name="Revoke runbook").click()
    page.get_by_role("button", name="Revoke this token").click()
    expect(page.locator(".messages")).to_contain_text("runbook is revoked")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(example, timeout=10)
    assert page.problems == []  # type: ignore[attr-defined]


def test_u5_the_field_that_is_wrong_is_focused_and_in_sight(world: World, open_page: Callable[..., Page]) -> None:
    """However far below the top of the page it stands; narrow, wide, light and dark."""
    plan = world.approve(world.plan())
    for look in ({"viewport": {"width": 320, "height": 640}, "color_scheme": "dark"}, {}):
        page = open_page("ada", **look)
        page.goto(reverse("plan", args=[plan.id]))
        page.get_by_label("Reason", exact=True).fill("it died")
        page.get_by_label("The pipeline's name", exact=True).fill("another")
        page.get_by_role("button", name="Send 12 events").click()
        field = page.get_by_label("The pipeline's name", exact=True)
        expect(field).to_be_focused()
        expect(field).to_be_in_viewport()
        expect(page.locator("#confirm-error")).to_contain_text("Nothing was sent.")
        assert axe_violations(page) == []
        assert page.evaluate(SIDEWAYS) <= 0


def test_u7_an_address_that_only_acts_is_a_page_that_axe_finds_nothing_on(
    people: None, open_page: Callable[..., Page]
) -> None:
    page = open_page("viewer", viewport={"width": 320, "height": 640})
    page.goto("/pipelines/orders/audit/")
    expect(page.locator("main")).to_contain_text("Nothing was done.")
    assert axe_violations(page) == []
    assert page.evaluate(SIDEWAYS) <= 0


def test_a_plan_that_nobody_computes_says_that_nothing_is_lost(world: World, open_page: Callable[..., Page]) -> None:
    plan, intent = plan_request(world.pipeline, actor="ada", now=timezone.now(), wake=False)
    intent.created_at -= timedelta(minutes=3)
    intent.save()
    page = open_page("ada")
    page.goto(reverse("plan", args=[plan.id]))
    expect(page.locator("#live")).to_contain_text("Queued for 3 min; no worker has taken it. Nothing is lost.")
    expect(page.locator("#live")).to_contain_text("make worker")
