"""What a request may be: strict names, strict types, and one shape for every refusal."""

from __future__ import annotations

import json

import pytest

from recovery_api.exceptions import PROBLEMS
from recovery_api.models import Event, Intent, Pipeline, Source
from recovery_api.services.ends import source_create
from tests.integration.api.conftest import Api

SOURCE = {"name": "orders", "kind": "paper_source", "options": {"path": "p"}}


def is_problem(answer, status, code):
    assert answer.status_code == status, answer.content
    assert answer.headers["Content-Type"] == "application/problem+json"
    body = answer.body
    assert (body["status"], body["code"], body["type"]) == (status, code, f"/api/v1/problems#{code}")
    assert body["title"] == PROBLEMS[code].title and body["detail"]
    return body


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "is missing"),
        (b"{", "not JSON"),
        (b'{"name": "a", "name": "b"}', "given twice"),
        (b'{"name": NaN}', "NaN is not JSON"),
        (b'{"name": 1e999}', "beyond every float"),
        (b'{"name": "\xff"}', "not UTF-8"),
        (b'{"name": "a\\u0000"}', "NUL"),
        (b'{"name": "\\ud800"}', "surrogate"),
        (b'{"na\\u0000me": 1}', "NUL"),
        (b"[1]", "is not an object"),
        (b'"text"', "is not an object"),
        (b"[" * 100_000, "nested deeper"),
        (b'{"a":' * 60 + b"1" + b"}" * 60, "nested deeper"),
        (b'{"name": ' + b"9" * 5000 + b"}", "not JSON"),
    ],
)
def test_body_that_is_no_json_object_is_a_problem(admin, raw, says):
    answer = admin.post("/sources", raw)
    assert says in is_problem(answer, 400, answer.body["code"])["detail"]
    assert not Source.objects.exists()


def test_body_that_is_too_large_is_refused_before_it_is_parsed(admin, settings):
    settings.FENCEPOST_API_BODY_LIMIT_BYTES = 1000
    assert is_problem(admin.post("/sources", b" " * 1001), 413, "too_large")["limit_bytes"] == "1000"
    assert admin.post("/sources", json.dumps(SOURCE).encode().ljust(1000)).status_code == 201


@pytest.mark.parametrize(
    ("change", "field", "code"),
    [
        ({"knd": "x"}, "knd", "unknown_field"),
        ({"name": 5}, "name", "bad_request"),
        ({"name": None}, "name", "bad_request"),
        ({"kind": True}, "kind", "bad_request"),
        ({"options": []}, "options", "bad_request"),
        ({"name": "x" * 201}, "name", "bad_request"),
    ],
)
def test_field_that_is_unknown_or_of_another_type_is_named(admin, change, field, code):
    body = is_problem(admin.post("/sources", SOURCE | change), 400, code)
    assert body["field"] == field
    if code == "unknown_field":
        assert "Did you mean 'kind'?" in body["remedy"]
    assert not Source.objects.exists()


@pytest.mark.parametrize(
    ("change", "field", "code"),
    [
        ({"name": "a/b"}, "source.name", "bad_input"),
        ({"name": "a,b"}, "source.name", "bad_input"),
        ({"name": "   "}, "source.name", "bad_input"),
        ({"kind": "paper_sauce"}, "source.kind", "unknown_option"),
        ({"kind": "paper_sink"}, "source.kind", "bad_input"),
        ({"options": {"pth": "p"}}, "paper_source.pth", "unknown_option"),
        ({"options": {"path": "p", "password": "hunter2"}}, "paper_source.password", "bad_input"),
        ({"options": {}}, "paper_source.path", "bad_input"),
    ],
)
def test_value_that_services_refuse_is_422_with_their_code(admin, change, field, code):
    answer = admin.post("/sources", SOURCE | change)
    assert is_problem(answer, 422, code)["field"] == field
    assert b"hunter2" not in answer.content and not Source.objects.exists()


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("?limt=5", "unknown_parameter"),
        ("?limit=0", "bad_request"),
        ("?limit=201", "bad_request"),
        ("?limit=1e2", "bad_request"),
        ("?limit=1&limit=2", "bad_request"),
        ("?limit=99999999999999999999999", "bad_request"),
        ("?cursor=x", "bad_request"),
        ("?status=owd", "bad_request"),
        ("?status=%00", "bad_request"),
        ("?%00=1", "bad_request"),
        ("?format=html", "unknown_parameter"),
    ],
)
def test_parameter_nobody_understands_is_refused_by_name(viewer, query, code):
    is_problem(viewer.get(f"/audits{query}"), 400, code)


def test_nearest_parameter_and_value_are_named(viewer):
    assert "'limit'" in viewer.get("/audits?limt=5").body["remedy"]
    assert "'owed'" in viewer.get("/audits?status=owd").body["detail"]
    is_problem(viewer.get("/me?x=1"), 400, "unknown_parameter")
    is_problem(viewer.call("POST", "/tokens?x=1", {}), 400, "unknown_parameter")


def test_framework_refusals_are_problems_too(viewer, admin):
    is_problem(Api().get("/sources"), 401, "not_authenticated")
    is_problem(Api("fp_nonsense").get("/sources"), 401, "not_authenticated")
    is_problem(Api("fp_größe").get("/sources"), 401, "not_authenticated")
    is_problem(viewer.get("/nowhere"), 404, "no_such_resource")
    is_problem(Api().call("PUT", "/a/b/c"), 404, "no_such_resource")
    assert "'sources'" in viewer.get("/sorces").body["remedy"]
    is_problem(viewer.get("/audits/not-a-uuid"), 404, "no_such_resource")
    is_problem(viewer.get("/audits/0197b2f4-8f3c-4d51-9b1e-2f6f6c1f8d10"), 404, "not_found")
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE"):
        answer = viewer.call(method, "/sources")
        is_problem(answer, 405, "method_not_allowed")
        assert set(answer.headers["Allow"].split(", ")) == {"GET", "HEAD", "POST"}
    is_problem(viewer.get("/sources", Accept="text/html"), 406, "not_acceptable")
    is_problem(admin.post("/sources", b"a=b", Content_Type="text/plain"), 415, "unsupported_media_type")
    is_problem(
        admin.post("/sources", b"a=b", Content_Type="application/x-www-form-urlencoded"), 415, "unsupported_media_type"
    )
    assert Api().get("/sources").headers["WWW-Authenticate"] == "Bearer"


def test_too_many_requests_are_told_when_to_come_again(viewer, settings):
    settings.FENCEPOST_API_RATES = {"person": "2/min", "anonymous": "1/min"}
    assert [viewer.get("/me").status_code for _ in range(2)] == [200, 200]
    answer = viewer.get("/me")
    is_problem(answer, 429, "throttled")
    assert 0 < int(answer.headers["Retry-After"]) <= 60
    assert [Api().get("/problems").status_code for _ in range(2)] == [200, 429]


def test_refusals_of_one_person_do_not_fill_the_timeline(viewer, settings):
    settings.FENCEPOST_API_RATES = {"person": "3/min", "anonymous": None}
    assert [viewer.post("/sources", SOURCE).status_code for _ in range(6)] == [403] * 3 + [429] * 3
    event = Event.objects.get(kind="access denied")
    assert event.refusals.count == 3, "what is throttled is not even counted"


def test_defect_is_a_problem_that_tells_nothing(admin, settings, caplog):
    settings.FENCEPOST_API_BODY_LIMIT_BYTES = None
    answer = admin.post("/sources", SOURCE)
    is_problem(answer, 500, "internal")
    assert b"TypeError" not in answer.content and "TypeError" in caplog.text


def test_every_code_is_listed_for_everybody():
    rows = Api().get("/problems").body["items"]
    assert {row["code"]: row["status"] for row in rows} == {code: kind.status for code, kind in PROBLEMS.items()}


@pytest.mark.parametrize(
    "name", ['50% "größe"', "a?b#c;d&e+f", "日本 語 🚀", "<script>alert(1)", "..a", "x" * 200, "%2F"]
)
def test_name_of_any_kind_is_a_segment_of_the_address(admin, pipeline, now, name):
    answer = admin.post("/sources", SOURCE | {"name": name})
    assert answer.status_code == 201, answer.body
    location = answer.headers["Location"].removeprefix("/api/v1")
    assert admin.get(location).body["name"] == name
    assert admin.post(f"{location}/test").status_code == 202


def test_name_that_is_not_there_is_answered_with_the_nearest(viewer, pipeline):
    body = is_problem(viewer.get("/sources/mail-order"), 404, "not_found")
    assert "mail-orders" in body["remedy"]
    for path in ("/sources/%00", "/sources/a%2Fb/test", "/sources/" + "x" * 201, "/sources/%FF"):
        assert viewer.get(path).status_code in (404, 405)


def test_names_that_differ_only_by_case_are_two(admin, now):
    for name in ("Outbox", "outbox", 'we"ird', "my.table", "größe"):
        source_create(name, "paper_source", {"path": name}, actor="owner", now=now)
    for name in ("Outbox", "outbox", "we%22ird", "my.table", "gr%C3%B6%C3%9Fe"):
        assert admin.get(f"/sources/{name}").status_code == 200
    body = is_problem(admin.get("/sources/OUTBOXX"), 404, "not_found")
    assert body["remedy"]
    injected = "x'; DROP TABLE recovery_api_source; --"
    is_problem(admin.get(f"/sources/{injected}"), 404, "not_found")
    assert Source.objects.count() == 5


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/audits", {}),
        ("/audits", {"pipeline": "mail", "dryrun": True, "dry_run": False}),
        ("/audits", {"pipeline": "mail", "source": {"format": "debezum"}}),
        ("/audits", {"pipeline": "mail", "frontier": ""}),
        ("/audits", {"pipeline": "mail", "frontier": 5}),
        ("/audits", {"pipeline": "mail", "frontier": "9223372036854775808"}),
        ("/audits", {"pipeline": "mail", "frontier": "1=2,1=3"}),
        ("/audits", {"pipeline": ""}),
        ("/audits", {"pipeline": "no such"}),
        ("/plans", {}),
        ("/plans", {"pipeline": "mail", "from": "100/0", "to": "FF/FFFFFFFF"}),
        ("/plans", {"pipeline": "mail", "frontier": None}),
        ("/recoveries", {}),
        ("/recoveries", {"events": []}),
        ("/recoveries", {"plan": "all", "digest": "d1", "pipeline": "mail", "reason": "x"}),
    ],
)
def test_option_nobody_understood_starts_nothing(everyone, pipeline, path, body):
    answer = everyone.post(path, body)
    assert answer.status_code in (400, 422) and answer.body["field"], answer.body
    assert not Intent.objects.exists()


def test_missing_selection_never_means_everything(everyone, approved_plan):
    whole = {"plan": str(approved_plan.id), "digest": "d1", "pipeline": "mail", "reason": "relay died"}
    for name in whole:
        without = {key: value for key, value in whole.items() if key != name}
        assert is_problem(everyone.post("/recoveries", without), 400, "bad_request")["field"] == name
    assert not Intent.objects.filter(action="recover").exists()
    assert everyone.post("/recoveries", whole).status_code == 202
    assert Pipeline.objects.count() == 1


def test_rc33_names_are_kept_exactly_and_two_that_differ_by_case_are_two_sources(admin):
    names = ["Outbox", "outbox", "order", "my.table", 'we"ird', "outbox events", "größe", 'o"; DROP TABLE outbox; --']
    for name in names:
        options = {"connection": "env:X", "schema": "Sales", "table": name, "coordinate": ["Select"], "key": "desc"}
        made = admin.post("/sources", {"name": name, "kind": "postgresql_outbox", "options": options})
        assert made.status_code == 201, made.body
        shown = admin.get(made.headers["Location"].removeprefix("/api/v1")).body
        assert shown["name"] == name and {key: shown["options"][key] for key in options} == options
    assert sorted(row["name"] for row in admin.get("/sources").body["items"]) == sorted(names)
