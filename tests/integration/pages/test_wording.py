"""W: what people read. One term for one thing on every face, the consequence first, the paper's words under Details."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.core.cache import caches
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from dashboard.sign_in_limit import TRIES_OF_A_NAME
from dashboard.views.advice import advice_of
from dashboard.views.lanes import stops_of
from recovery_api.domain.coordinates import Spelling
from recovery_api.domain.evidence_classes import EvidenceClass
from recovery_api.domain.findings import Cause, FindingWord
from recovery_api.domain.pipelines import OPTIONS
from recovery_api.domain.strategies import STRATEGIES
from recovery_api.management.lines import plan_lines, recovery_lines
from recovery_api.selectors.fleet import pipeline_status
from tests.integration.pages.fleet import audit_make, pipeline_make, plan_make

TEMPLATES = Path(__file__).parents[3] / "templates"
NOT_FOR_PEOPLE = re.compile(
    r"\b(landed|armed|there already|re-driven|hazard-free|benign|nobody is at it|not well|may strand|obligations?)\b",
    re.IGNORECASE,
)
"""Words of the paper, of the protocol, or of nobody; each has its one plain word (delivered, prepared, already present)."""

pytestmark = pytest.mark.django_db


def texts_of(template: str) -> Iterator[str]:
    """What a template says by itself: text between tags, and the sentences it hands to components. No hover text."""
    visible = re.sub(r"\{#.*?#\}|\{\{.*?\}\}", " ", template, flags=re.DOTALL)
    yield from re.findall(r'"([^"]*\s[^"]*)"', " ".join(re.findall(r"\{%(.*?)%\}", visible, flags=re.DOTALL)))
    yield from re.split(r"<[^>]*>", re.sub(r"\{%.*?%\}", " ", visible, flags=re.DOTALL))


@pytest.mark.parametrize("path", sorted(TEMPLATES.rglob("*.html")), ids=lambda path: str(path.relative_to(TEMPLATES)))
def test_w_no_template_speaks_the_protocols_words(path: Path) -> None:
    said = [text for text in texts_of(path.read_text(encoding="utf-8")) if NOT_FOR_PEOPLE.search(text)]
    assert said == []


def test_w_no_list_of_words_speaks_the_protocols_words() -> None:
    listed = [
        *(row.means for word in (FindingWord, Cause, EvidenceClass) for row in word),
        *(row.remedy for row in EvidenceClass),
        *(word for one in STRATEGIES.values() for step in one.steps for word in (step.name, step.says)),
        *(stop.says for stop in stops_of({}, "unknown", Spelling.BIGINT, None, None)),
    ]
    assert [text for text in listed if NOT_FOR_PEOPLE.search(text)] == []


def test_w_commands_count_with_the_pages_words() -> None:
    recovery = {
        "recovery": "r",
        "pipeline": "p",
        "outcome": "exactly_once",
        "state": "finished",
        "says": "",
        "frontier": "9",
        "generation": "3",
        "part": 1,
        "parts": 1,
        "landed": 43,
        "absorbed": 2,
        "altered": 0,
        "problem": None,
        "certificate_is_void": False,
        "certificate_is_expired": False,
        "certificate_evidence_until": None,
        "steering_says": "",
    }
    plan = {
        "plan": "p",
        "pipeline": "p",
        "state": "applied",
        "frontier": "9",
        "says": "",
        "batch": {},
        "classes": [],
        "conditions": [],
        "stranded": 7,
        "samples": [],
    }
    said = " ".join([*recovery_lines(recovery), *plan_lines(plan)])
    assert "delivered 43, already present 2" in said
    assert "Newer events that may be turned away: 7" in said
    assert NOT_FOR_PEOPLE.search(said) is None


def test_w_places_have_plain_names() -> None:
    names = {stop.name for stop in stops_of({}, "unknown", Spelling.BIGINT, None, None)}
    assert {"last clean check", "last check", "newest event"} <= names
    assert not names & {"verified", "judged at f", "head"}


def test_w_who_may_approve_is_said_by_exception(sign_in: Callable[..., Client]) -> None:
    now = timezone.now()
    plan = plan_make(pipeline_make("orders", now), now, author="operator")
    page = sign_in("approver").get(reverse("plan", args=[plan.id])).content.decode()
    assert "Any approver except operator, who made this plan." in page
    assert "What you can claim afterwards" in page and "Newer events that may be turned away" in page


@pytest.mark.parametrize(
    ("route", "digest"), [("plan", "d" * 64), ("audit", "evidence digest"), ("pipeline", "snapshot")]
)
def test_w_digests_and_snapshots_stand_under_details(sign_in: Callable[..., Client], route: str, digest: str) -> None:
    now = timezone.now()
    pipeline = pipeline_make("orders", now)
    audit = audit_make(
        pipeline, "owed", now, evidence_digest="e" * 64, lanes={"0": {"status": "owed", "details": ["Lost."]}}
    )
    about = {"plan": plan_make(pipeline, now).id, "audit": audit.id, "pipeline": pipeline.name}
    page = sign_in("viewer").get(reverse(route, args=[about[route]])).content.decode()
    page = page[page.index("<main") :]
    outside = re.sub(r"<details class=\"more\">.*?</details>", "", page, flags=re.DOTALL)
    outside = re.sub(r"<div class=\"command\">.*?</div>|<input[^>]*>", "", outside, flags=re.DOTALL)
    assert digest in page.lower() and digest not in outside.lower()


def test_w_a_pipeline_that_was_never_audited_is_told_so_plainly(sign_in: Callable[..., Client]) -> None:
    now = timezone.now()
    says = advice_of(pipeline_status(pipeline_make("orders", now), now), now).says
    assert "not a success" in says


def test_w_what_is_next_is_the_plan_that_waits_for_a_person(sign_in: Callable[..., Client]) -> None:
    now = timezone.now()
    pipeline = pipeline_make("orders", now)
    audit_make(pipeline, "owed", now)
    client = sign_in("viewer")
    assert "Plan a recovery. A plan shows" in client.get("/pipelines/orders/").content.decode()
    plan_make(pipeline, now)
    page = client.get("/pipelines/orders/").content.decode()
    assert "A plan for 3 events waits for an approval." in page and "Plan a recovery. A plan shows" not in page


def test_w_a_locked_name_is_told_what_is_locked_and_for_how_long(client: Client) -> None:
    caches["shared"].clear()
    for _ in range(TRIES_OF_A_NAME + 1):
        page = client.post("/sign-in/", {"username": "ada", "password": "wrong"})
    assert "Sign-in for this name is locked here for 5 minutes." in page.content.decode()
    caches["shared"].clear()


def test_w_what_a_change_and_a_retirement_mean_is_said_plainly(sign_in: Callable[..., Client]) -> None:
    pipeline_make("orders", timezone.now())
    admin = sign_in("admin")
    assert "no longer count" in admin.get("/sources/source%20orders/edit/").content.decode()
    assert "Nothing can use it any more." in admin.get("/sources/source%20orders/retire/").content.decode()
    assert "The drills were never run here. Run them." in admin.get("/sinks/sink%20orders/").content.decode()


def test_w_the_choice_for_an_unreadable_sink_is_asked_as_a_question() -> None:
    [preference] = [option for option in OPTIONS.options if option.name == "failure_preference"]
    assert "send uncertain events again, or leave them out?" in preference.says
