"""Runbooks on pages: linked from a pipeline's status, filled in with its values, a team's own beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from recovery_api.domain.runbooks import runbook_names
from tests.integration.pages.fleet import audit_make, pipeline_make, plan_make

pytestmark = pytest.mark.django_db


def test_a_pipelines_page_links_the_one_for_its_status_filled_in(
    sign_in: Callable[..., Client], tmp_path: Path, settings: Any
) -> None:
    now = timezone.now()
    pipeline = pipeline_make("it's <b>mail", now, options={"owner": "team payments"})
    audit_make(pipeline, "owed", now)
    plan = plan_make(pipeline, now)
    settings.FENCEPOST_TEAM_RUNBOOKS = str(tmp_path)
    (tmp_path / "owed.md").write_text("Call **Ada**.<script>alert(1)</script>", encoding="utf-8")
    client = sign_in("viewer")
    address = "/pipelines/it's%20%3Cb%3Email/"
    page = client.get(address).content.decode()
    assert 'runbooks/owed/">Runbook</a>' in page
    book = client.get(f"{address}runbooks/owed/").content.decode()
    assert "Owed: events never reached the sink" in book and "team payments" in book
    assert f"manage.py approve {plan.id} --digest {'d' * 64}" in book
    assert "<b>mail" not in book and "<script>alert" not in book
    assert "<strong>Ada</strong>" in book


def test_each_is_shown_without_a_pipeline_and_no_other(sign_in: Callable[..., Client]) -> None:
    client = sign_in("viewer")
    listed = client.get("/runbooks/").content.decode()
    for name in runbook_names():
        assert f'href="/runbooks/{name}/"' in listed
        assert client.get(f"/runbooks/{name}/").status_code == 200
    missing = client.get("/runbooks/owd/")
    assert missing.status_code == 404 and "Did you mean" in missing.content.decode()
