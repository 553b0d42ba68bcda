"""Many omissions at once, and the question whether a source may be purged, by REST."""

from __future__ import annotations

import pytest

from recovery_api.models import Intent
from tests.integration.control.test_omissions import audit_make, found

pytestmark = pytest.mark.django_db
PATH = "/pipelines/mail"


def test_a_range_is_previewed_and_then_confirmed(operator, viewer, pipeline):
    audit = audit_make(pipeline, [found(10), found(20), found(30)])
    made = operator.post(f"{PATH}/omission-previews", {"low": "10", "high": "20", "audit": str(audit.pk)})
    assert made.status_code == 201, made.body
    assert (made.body["counts"], made.body["says"]) == ({"owed": "2"}, "2 events would be acknowledged.")
    address = f"{PATH}/omission-previews/{made.body['preview']}"
    assert viewer.get(address).body == made.body
    assert viewer.post(f"{address}/confirm", {"reason": "x"}).status_code == 403
    given = {"reason": "test orders", "reference": "OPS-7", "until": "2099-01-01T00:00:00Z"}
    done = operator.post(f"{address}/confirm", given)
    assert (done.status_code, done.body["count"]) == (200, "2"), done.body
    items = viewer.get(f"{PATH}/omissions").body["items"]
    assert [(one["coordinate"], one["reference"], one["until"][:10]) for one in items] == [
        ("10", "OPS-7", "2099-01-01"),
        ("20", "OPS-7", "2099-01-01"),
    ]
    assert operator.post(f"{address}/confirm", given).status_code == 409
    withdrawn = operator.post(f"{PATH}/omissions/withdraw", {"act": done.body["act"]})
    assert (withdrawn.status_code, withdrawn.body["count"]) == (200, "2")
    assert operator.post(f"{PATH}/omissions/withdraw", {}).status_code == 422


def test_what_cannot_be_previewed_says_which_field(operator, pipeline):
    assert operator.post(f"{PATH}/omission-previews", {}).status_code == 409
    audit_make(pipeline, [found(10)])
    for body, field in (({"low": "x"}, "low"), ({"low": "9", "high": "1"}, "low"), ({"colour": "red"}, "colour")):
        answer = operator.post(f"{PATH}/omission-previews", body)
        assert answer.body.get("field") == field, answer.body
    for until in ("tomorrow", "2026-01-01", "2001-01-01T00:00:00Z"):
        body = {"coordinate": "10", "reason": "x", "until": until}
        assert operator.post(f"{PATH}/omissions", body).body["field"] == "until"


def test_an_import_answers_with_the_work_that_looks_it_up(operator, pipeline):
    audit_make(pipeline, [found(10)])
    answer = operator.post(f"{PATH}/omission-imports", {"content": "id\n10\n"})
    assert (answer.status_code, answer.body["action"]) == (202, "omission_look_up")
    preview = Intent.objects.get().arguments["preview"]
    assert operator.get(f"{PATH}/omission-previews/{preview}").body["counts"] is None
    assert operator.post(f"{PATH}/omission-imports", {"content": "why\nx\n"}).body["field"] == "content"


def test_whether_a_source_may_be_purged(viewer, pipeline):
    path = f"/sources/{pipeline.source.name}/purge-check"
    assert viewer.get(f"{path}?below=50").body["answer"] == "unknown"
    audit_make(pipeline, [found(40), found(60)])
    no = viewer.get(f"{path}?below=50").body
    (lane,) = no["lanes"]
    assert no["answer"] == "no" and lane["pipelines"][0]["says"] == "Event 40 is lost."
    assert viewer.get(f"{path}?below=39").body["answer"] == "yes"
    assert viewer.get(path).body["field"] == "below"
    assert viewer.get(f"{path}?below=x").status_code == 422
