"""RC-71: the digits of a coordinate are the same on every face, in every link, and in every file."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from recovery_api.models import Pipeline
from tests.integration.pages import fleet
from tests.integration.pages.incident import listed, plan_make

pytestmark = pytest.mark.django_db

NUMBERS = ("-7210000000000000123", "9007199254740993", "9223372036854775807")
"""None of them is a double."""


def test_rc71_no_face_changes_a_digit(pipeline: Pipeline, sign_in: Callable[..., Client]) -> None:
    listing = [listed(int(number)) for number in NUMBERS]
    audit = fleet.audit_make(pipeline, "owed", timezone.now(), listing=listing, evidence_rows=3)
    plan = plan_make(pipeline, listing=listing)
    client = sign_in("viewer")
    file = client.get(reverse("plan-events", args=[plan.id])).getvalue().decode()
    assert [row[0] for row in csv.reader(io.StringIO(file))][1:] == list(NUMBERS)
    for path in (f"plans/{plan.id}", f"audits/{audit.id}"):
        rest = client.get(f"/api/v1/{path}/findings").json()["items"]
        assert [row["coordinate"] for row in rest] == [row["position"] for row in rest] == list(NUMBERS)
    page = client.get(reverse("findings", args=[audit.id])).content.decode()
    links = [one.replace("&amp;", "&") for one in re.findall(r'href="(/event/\?[^"]*)"', page)]
    for number in NUMBERS:
        assert f">{number}<" in page
        [link] = [one for one in links if one.endswith(f"at={number}") or f"at={number}&" in one]
        event = client.get(link).content.decode()
        assert f'data-copy="{number}"' in event
        filtered = client.get(reverse("findings", args=[audit.id]) + f"?from={number}&to={number}").content.decode()
        assert f">{number}<" in filtered and filtered.count('class="coordinate">') == 1
    rounded = {str(int(float(number))) for number in NUMBERS} - set(NUMBERS)
    assert rounded and not any(one in page + file for one in rounded)
