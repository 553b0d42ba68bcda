"""Presets by REST: listed, filled where options are left out, refused with what to do."""

from __future__ import annotations

from recovery_api.models import Source

CONNECTION = {"connection": "env:FENCEPOST_END_SHOP"}


def test_presets_are_listed_with_what_they_fill(viewer):
    rows = {row["name"]: row for row in viewer.get("/presets").body["items"]}
    assert rows["marten"]["options"]["coordinate"] == ["seq_id"] and rows["pg-boss"]["answer"] == "refused"
    assert {row["end"] for row in viewer.get("/presets?end=source").body["items"]} == {"source"}


def test_a_source_is_filled_and_what_was_given_wins(admin):
    body = {"name": "shop", "preset": "marten", "options": {**CONNECTION, "schema": "shop"}}
    answer = admin.post("/sources", body)
    assert answer.status_code == 201, answer.body
    assert (answer.body["kind"], answer.body["options"]["schema"]) == ("postgresql_outbox", "shop")
    assert "schema" not in answer.body["filled"] and "table" in answer.body["filled"]
    assert Source.objects.get().options["key"] == "stream_id"
    tested = admin.post("/connection-tests", {"end": "source", "preset": "axon", "options": CONNECTION})
    assert tested.status_code == 202


def test_what_cannot_be_filled_is_refused_by_its_field(admin):
    for body, field, says in (
        ({"preset": "river"}, "preset", "job queue"),
        ({"preset": "martens"}, "preset", "marten"),
        ({"preset": "watermill"}, "source.table", "watermill_orders"),
        ({}, "source.kind", "or a preset"),
        ({"preset": "marten", "kind": "memory"}, "preset", "Leave the kind out"),
    ):
        answer = admin.post("/sources", {"name": "shop", "options": CONNECTION, **body})
        assert (answer.status_code, answer.body["field"]) == (422, field), answer.body
        assert says in str(answer.body)
    assert not Source.objects.exists()
