"""Registering by the pages from a preset: its options stand in the form, and the form is what counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from recovery_api.models import Source

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def admin(transactional_db: None, sign_in: Callable[..., Client]) -> Client:
    return sign_in("admin", name="root")


def fields(form: Any) -> dict[str, str]:
    return {field.html_name: field.value() or "" for field in form}


def test_the_form_offers_libraries_and_is_filled_from_one(admin: Client) -> None:
    offered = admin.get("/add/source/").content.decode()
    assert 'href="?preset=marten"' in offered and "pg-boss" in offered
    page = admin.get("/add/source/?preset=marten")
    form = fields(page.context["form"])
    assert (form["option_table"], form["option_coordinate"], form["option_preset"]) == ("mt_events", "seq_id", "marten")
    assert "Filled for Marten" in page.content.decode() and "--preset marten" in page.content.decode()


def test_what_stands_in_the_form_counts_and_a_cleared_field_stays_clear(admin: Client) -> None:
    form = fields(admin.get("/add/source/?preset=marten").context["form"])
    form |= {
        "name": "shop",
        "kind": "postgresql_outbox",
        "option_connection": "env:FENCEPOST_END_SHOP",
        "do": "untested",
    }
    answer = admin.post("/add/source/", {**form, "option_key": "", "option_schema": "shop"})
    assert answer.status_code == 302, answer.content.decode()
    options = Source.objects.get().options
    assert "key" not in options and (options["schema"], options["preset"]) == ("shop", "marten")
    page = admin.get(answer["Location"]).content.decode()
    assert "mt_events (preset)" in page and "<dd>shop</dd>" in page


@pytest.mark.parametrize(("name", "says"), [("river", "it is a job queue"), ("martens", "Did you mean")])
def test_a_preset_that_is_refused_or_unknown_is_a_page_that_says_what_to_do(
    admin: Client, name: str, says: str
) -> None:
    page = admin.get(f"/add/source/?preset={name}")
    assert page.status_code in (400, 404, 409, 422) and says in page.content.decode()
