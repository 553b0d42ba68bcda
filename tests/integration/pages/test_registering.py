"""Registering by the pages: tested by a worker at a real end, shown, and only then saved; changed and retired."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.test import Client
from django.utils import timezone

from recovery_api.models import Event, Intent, IntentState, Pipeline, PlanState, Sink, Source
from recovery_api.selectors.ends import pipeline_get
from recovery_api.services.ends import sink_create
from recovery_api.services.event_reads import event_contents_purge
from tests.contract.sink_engines import kit_make
from tests.integration.pages.fleet import pipeline_make, plan_make
from tests.integration.recovery.world import OUTBOX
from workers.connectors.sinks.kit import KIT_VERSION, kit_sql
from workers.connectors.sinks.kit.releases import releases
from workers.runners import intent_run

pytestmark = pytest.mark.django_db(transaction=True)

MAPPING = {
    "option_table": "outbox",
    "option_coordinate": "tx, id",
    "option_coordinate_spelling": "xid8_bigint",
    "option_key": "key",
    "option_op": "op",
    "option_content": "content",
}


@pytest.fixture
def admin(transactional_db: None, sign_in: Callable[..., Client]) -> Client:
    return sign_in("admin", name="root")


@pytest.fixture
def reference(database_factory: Callable[[str], str], tmp_path: Path) -> str:
    """A reference to a database that holds an outbox, of somebody who may do everything there."""
    dsn = database_factory("pages")
    with psycopg.connect(dsn) as connection:
        connection.execute(OUTBOX)
    (tmp_path / "dsn").write_text(dsn)
    return f"file:{tmp_path / 'dsn'}"


def run_newest() -> Intent:
    intent = Intent.objects.latest("created_at")
    intent_run(str(intent.id), "test")
    intent.refresh_from_db()
    return intent


def fields(form: Any) -> dict[str, str]:
    """A shown form as a browser would post it back."""
    return {field.html_name: field.value() or "" for field in form}


def test_source_is_tested_shown_and_saved(admin: Client, reference: str) -> None:
    form = {
        "kind": "postgresql_outbox",
        "name": 'orders "eu" 🧾',
        "option_connection": reference,
        "do": "test",
        **MAPPING,
    }
    asked = admin.post("/add/source/", form)
    found = asked["Location"]
    assert b"hx-trigger" in admin.get(found).content
    assert not Source.objects.exists()
    run_newest()
    page = admin.get(found, headers={"HX-Request": "true"}).content.decode()
    assert "can serve" in page and "Save as working" in page and "<html" not in page
    saved = admin.post(found.partition("?")[0], {"name": 'orders "eu" 🧾'})
    source = Source.objects.get()
    assert (source.name, source.report["is_usable"], source.created_by) == ('orders "eu" 🧾', True, "root")
    assert source.options["coordinate"] == ["tx", "id"]
    assert "connect_timeout_seconds" not in source.options
    assert admin.get(saved["Location"]).status_code == 200


def test_s1_sample_rows_are_seen_by_who_asked_masked_until_they_ask_for_more(
    admin: Client, reference: str, sign_in: Callable[..., Client]
) -> None:
    with psycopg.connect(Path(reference.removeprefix("file:")).read_text()) as connection:
        for key in ("<b>k1</b>", "k2"):
            content = json.dumps({"secret": "<script>alert(1)</script>", "the filler": "x" * 9000})
            connection.execute('INSERT INTO outbox ("key", content) VALUES (%s, %s)', [key, content])
    form = {"kind": "postgresql_outbox", "name": "orders", "option_connection": reference, "do": "test", **MAPPING}
    found = admin.post("/add/source/", form)["Location"]
    intent = run_newest()
    page = admin.get(found).content.decode()
    assert "Sample rows, as mapped: 2 rows, the highest coordinate first" in page and "&lt;b&gt;k1&lt;/b&gt;" in page
    assert "9,057 bytes, masked" in page and "alert(1)" not in page
    assert "Needs the role operator or approver" in page
    assert "content_start" not in json.dumps(intent.result)
    contents = f"/tests/{intent.id}/contents/"
    assert admin.post(contents).status_code == 403
    operator = sign_in("operator", name="olga")
    assert operator.post(contents).status_code == 409
    assert operator.get(f"/api/v1/intents/{intent.id}/content").status_code == 409
    for reader in (operator, sign_in("viewer"), sign_in("admin", name="another")):
        seen = reader.get(f"/api/v1/intents/{intent.id}").content.decode()
        assert not names_key(seen) and "Only root, who asked for the test" in seen
        assert not names_key(reader.get("/api/v1/intents").content.decode())
    asker = sign_in("operator", name="root")
    shown = asker.post(contents)
    assert b"&lt;script&gt;alert(1)&lt;/script&gt;" in shown.content and b"<script>alert" not in shown.content
    assert "no-store" in shown["Cache-Control"] and b"x" * 201 not in shown.content
    event = Event.objects.get(kind="content read")
    assert (event.actor, event.data["test"]) == ("root", str(intent.id))
    raw = asker.get(f"/api/v1/intents/{intent.id}/content")
    assert [row["coordinate"] for row in json.loads(raw.content)] == [
        row["coordinate"] for row in intent.result["sample"]["rows"]
    ]
    assert Event.objects.filter(kind="content read").count() == 2
    admin.post(found.partition("?")[0], {"name": "orders"})
    saved = asker.get("/sources/orders/").content.decode()
    assert "9,057 bytes, masked" in saved and contents in saved
    for reader in (operator, sign_in("viewer")):
        assert not names_key(reader.get("/sources/orders/").content.decode())
        assert not names_key(reader.get("/api/v1/sources/orders").content.decode())
    event_contents_purge(timezone.now() + timedelta(hours=1))
    assert asker.post(contents).status_code == 404


def test_empty_table_says_so_in_the_preview(admin: Client, reference: str) -> None:
    form = {"kind": "postgresql_outbox", "name": "orders", "option_connection": reference, "do": "test", **MAPPING}
    found = admin.post("/add/source/", form)["Location"]
    run_newest()
    assert b"The table holds no row yet" in admin.get(found).content


def test_what_cannot_serve_is_said_and_not_saved(admin: Client, reference: str) -> None:
    form = {"kind": "postgresql_outbox", "name": "orders", "option_connection": reference, "do": "test", **MAPPING}
    found = admin.post("/add/source/", {**form, "option_table": "outbx"})["Location"]
    run_newest()
    page = admin.get(found).content.decode()
    assert "cannot serve" in page and "outbx" in page and "Save as working" not in page
    assert admin.post(found.partition("?")[0], {"name": "orders"}).status_code == 409
    assert not Source.objects.exists()
    back = admin.get(re.search(r'href="(/add/source/\?from=[^"]+)"', page)[1].replace("&amp;", "&"))  # type: ignore[index]
    assert fields(back.context["form"])["option_table"] == "outbx"
    assert fields(back.context["form"])["name"] == "orders"


def test_test_that_is_old_is_not_saved(admin: Client, reference: str) -> None:
    form = {"kind": "postgresql_outbox", "name": "orders", "option_connection": reference, "do": "test", **MAPPING}
    found = admin.post("/add/source/", form)["Location"].partition("?")[0]
    run_newest()
    Intent.objects.update(finished_at=timezone.now() - timedelta(hours=2))
    refused = admin.post(found, {"name": "orders"})
    assert refused.status_code == 409
    assert b"its test is too old" in refused.content


def test_untested_is_saved_only_on_purpose(admin: Client) -> None:
    form = {"kind": "postgresql_outbox", "name": "orders", "option_connection": "env:X", "do": "untested", **MAPPING}
    page = admin.post("/add/source/", form, follow=True).content.decode()
    assert "registered untested" in page and "never tested" in page
    assert not Intent.objects.exists()


@pytest.mark.parametrize(
    ("change", "field", "says"),
    [
        ({"name": "a/b"}, "name", "no slash"),
        ({"name": "x" * 300}, "name", "at most 200 characters"),
        ({"name": "..".strip()}, "name", "cannot be an address"),
        ({"name": "3f0c439b-5cdf-4bd1-a915-682cebb5bce2"}, "name", "spelled like an id"),
        ({"option_connection": "postgres://me:secret@host/db"}, "option_connection", "It is not a reference"),
        ({"option_coordinate": "id"}, "option_coordinate", "1 columns are given"),
        ({"option_lock_tries": "many"}, "option_lock_tries", "not a whole number"),
        ({"option_lock_timeout_ms": "99999"}, "option_lock_timeout_ms", "lies outside 1 to 1000"),
        ({"option_op_values": "c"}, "option_op_values", "is not name=column"),
        ({"option_table": ""}, "option_table", "required"),
    ],
)
def test_mistake_is_said_at_its_field(admin: Client, change: dict[str, str], field: str, says: str) -> None:
    form = {"kind": "postgresql_outbox", "name": "orders", "option_connection": "env:X", "do": "test", **MAPPING}
    response = admin.post("/add/source/", {**form, **change})
    assert response.status_code == 400
    assert says in " ".join(response.context["form"].errors[field])
    assert not Intent.objects.exists()
    assert "secret" not in " ".join(response.context["form"].errors.get("option_connection", []))


def test_name_that_is_taken_is_said_before_anything_is_tested(admin: Client) -> None:
    pipeline_make("orders", timezone.now())
    form = {"kind": "postgresql_outbox", "name": "source orders", "option_connection": "env:X", **MAPPING}
    response = admin.post("/add/source/", {**form, "do": "test"})
    assert "is taken" in " ".join(response.context["form"].errors["name"])


def test_kind_of_the_other_end_and_unknown_kinds_are_refused(admin: Client) -> None:
    assert admin.get("/add/source/?kind=postgresql_kit").status_code == 400
    assert admin.get("/add/source/?kind=postgresql_outbx").status_code == 400
    assert admin.get("/add/source/?from=nonsense").status_code == 404
    assert admin.get("/add/sink/").context["kinds"]


def test_sink_without_its_kit_leads_to_the_kit_and_back(admin: Client, reference: str) -> None:
    """RC: nothing is promised of a sink before its kit is there."""
    form = {"kind": "postgresql_kit", "name": "mail", "option_connection": reference, "do": "test"}
    found = admin.post("/add/sink/", form)["Location"]
    run_newest()
    install = re.search(r'href="(/add/sink/found/[^"]+/install/)\?', admin.get(found).content.decode())[1]  # type: ignore[index]
    shown = admin.post(install, {"do": "show"})["Location"]
    assert b"hx-trigger" in admin.get(shown).content
    run_newest()
    assert "CREATE SCHEMA" in admin.get(shown).content.decode()
    run = admin.post(install, {"do": "install"})["Location"]
    run_newest()
    assert "Installed." in admin.get(run).content.decode()
    again = admin.post("/add/sink/", form)["Location"]
    run_newest()
    admin.post(again.partition("?")[0], {"name": "mail"})
    sink = Sink.objects.get()
    assert (sink.report["is_usable"], sink.capability["archetype"]) == (True, "fenced")
    admin.post("/sinks/mail/install/", {"do": "install"})
    assert run_newest().result["installed"] is False


def test_r7_older_kit_is_upgraded_from_its_page(admin: Client, reference: str) -> None:
    dsn = Path(reference.removeprefix("file:")).read_text()
    release = [release for release in releases() if release.version < KIT_VERSION][-1]
    with psycopg.connect(dsn) as administrator:
        administrator.execute(kit_sql(kit_make(), administrator.info.dbname, release.text).encode())
    form = {"kind": "postgresql_kit", "name": "mail", "option_connection": reference, "do": "test"}
    found = admin.post("/add/sink/", form)["Location"]
    run_newest()
    says = f"ersion {release.version} of the sink kit is installed; this Fencepost writes version {KIT_VERSION}"
    assert says in admin.get(found).content.decode()
    admin.post(found.partition("?")[0], {"name": "mail"})
    assert b'value="upgrade"' in admin.get("/sinks/mail/install/").content
    done = admin.post("/sinks/mail/install/", {"do": "upgrade"})["Location"]
    assert run_newest().result["upgraded"] is True
    assert "Upgraded." in admin.get(done).content.decode()
    assert f"from version {release.version} to {KIT_VERSION}" in Event.objects.get(kind="sink installed").says


def test_registered_end_is_tested_again(admin: Client, reference: str) -> None:
    form = {"kind": "postgresql_outbox", "name": "orders", "option_connection": reference, "do": "untested", **MAPPING}
    admin.post("/add/source/", form)
    assert admin.post("/sources/orders/test/")["Location"] == "/sources/orders/"
    assert b'hx-trigger="every 1s"' in admin.get("/sources/orders/test/").content
    assert run_newest().state == IntentState.DONE
    assert Source.objects.get().report["is_usable"] is True
    assert b"hx-trigger" not in admin.get("/sources/orders/test/").content


def test_edit_shows_what_lapses_and_keeps_only_what_was_filled_in(admin: Client) -> None:
    now = timezone.now()
    plan = plan_make(pipeline_make("orders", now), now)
    page = admin.get("/sources/source%20orders/edit/")
    assert b"Used by 1 pipeline" in page.content and b"1 plan waiting" in page.content
    given = {**fields(page.context["form"]), "option_event_id": "id"}
    assert admin.post("/sources/source%20orders/edit/", given).status_code == 302
    source = Source.objects.get()
    assert source.options == {"connection": "env:SOURCE", "table": "outbox", "coordinate": ["id"], "event_id": "id"}
    assert source.report is None
    plan.refresh_from_db()
    assert plan.state == PlanState.LAPSED
    assert b"Options of source source orders changed: event_id." in admin.get("/sources/source%20orders/").content


def test_pipeline_is_registered_of_tested_ends_or_on_purpose(admin: Client) -> None:
    for word, kind, more in (
        ("source", "postgresql_outbox", MAPPING),
        ("sink", "postgresql_kit", {}),
    ):
        admin.post(
            f"/add/{word}/", {"kind": kind, "name": word, "option_connection": "env:X", "do": "untested", **more}
        )
    form = {"name": "mail", "source": "source", "sink": "sink", "scope_kind": "some", "scope": "k2\r\nk1\r\n"}
    refused = admin.post("/add/pipeline/", {**form, "do": "save"})
    assert "never passed a test" in " ".join(refused.context["form"].errors["source"])
    assert admin.post("/add/pipeline/", {**form, "do": "untested"}).status_code == 302
    pipeline = Pipeline.objects.get()
    assert (pipeline.scope, pipeline.requires_other_approver) == (["k1", "k2"], True)
    assert "No sink is free." in admin.get("/add/pipeline/").content.decode()


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"scope_kind": "some", "scope": "\r\n"}, "scope"),
        ({"scope_kind": "every", "scope": "k1"}, "scope"),
        ({"option_batch_limit": "0"}, "option_batch_limit"),
    ],
)
def test_scope_and_options_of_a_pipeline_are_read_strictly(admin: Client, given: dict[str, str], field: str) -> None:
    pipeline_make("orders", timezone.now())
    page = admin.get("/pipelines/orders/edit/")
    response = admin.post(
        "/pipelines/orders/edit/", {**fields(page.context["form"]), "author_may_approve": "", **given}
    )
    assert response.status_code == 400
    assert field in response.context["form"].errors
    assert Pipeline.objects.get().scope is None


def test_delivery_of_a_pipeline_is_changed_on_its_page_to_a_free_sink_that_can_be_sent_to(admin: Client) -> None:
    now = timezone.now()
    pipeline = pipeline_make("orders", now)
    plan = plan_make(pipeline, now)
    pipeline_make("letters", now)
    inbox = {"table": "inbox", "coordinate": ["id"]}
    for name, kind, more in (("kit", "postgresql_kit", {}), ("inbox", "postgresql_table", inbox)):
        sink_create(name, kind, {"connection": "env:SINK", **more}, actor="root", now=now)

    def edit(**given: str) -> Any:
        form = admin.get("/pipelines/orders/edit/").context["form"]
        assert (
            admin.post("/pipelines/orders/edit/", {**fields(form), "author_may_approve": "", **given}).status_code
            == 302
        )
        return form

    form = edit(delivery="kit")
    assert [name for name, _ in form.fields["delivery"].choices] == ["", "kit"]
    plan.refresh_from_db()
    assert (pipeline_get("orders").fired_into.name, plan.state) == ("kit", PlanState.LAPSED)
    says = "Pipeline orders changed: delivery, from the record itself to kit."
    assert says in admin.get("/pipelines/orders/").content.decode()
    form = edit(delivery="")
    assert fields(form)["delivery"] == "kit" and "delivery" in [one.name for one in form.sections[0].fields]
    assert pipeline_get("orders").delivery is None


def test_u4_the_kits_page_keeps_the_ends_name_and_leads_on(admin: Client, reference: str) -> None:
    form = {"kind": "postgresql_kit", "name": "mail of orders", "option_connection": reference, "do": "test"}
    found = admin.post("/add/sink/", form)["Location"]
    run_newest()
    [install] = re.findall(r'href="(/add/sink/found/[^"]+/install/[^"]*)"', admin.get(found).content.decode())
    page = admin.get(install).content.decode()
    [action] = re.findall(r'<form method="post" action="([^"]+)" class="panel"', page)
    shown = admin.post(action.replace("&amp;", "&"), {"do": "show"})["Location"]
    run_newest()
    page = admin.get(shown).content.decode()
    assert "Sink kit for <bdi>mail of orders</bdi>" in page
    [on] = re.findall(r'class="button primary" href="([^"]+)">Test it again', page)
    form_page = admin.get(on.replace("&amp;", "&"))
    assert fields(form_page.context["form"])["name"] == "mail of orders"
    assert fields(form_page.context["form"])["option_connection"] == reference


def test_u5_a_wrong_name_is_said_at_its_field_without_the_fields_name(admin: Client) -> None:
    pipeline_make("orders", timezone.now())
    page = admin.post("/pipelines/orders/retire/", {"confirm": "order"}).content.decode()
    field = page[page.index('<div class="field has-error">') :]
    field = field[: field.index("</form>")]
    assert 'aria-invalid="true"' in field and 'aria-describedby="confirm_help confirm_error"' in field
    assert "is not this pipeline&#x27;s name" in field
    assert "confirm:" not in page.lower()


def test_retiring_needs_the_name_and_nothing_that_uses_it(admin: Client) -> None:
    pipeline_make("orders", timezone.now())
    page = admin.get("/sources/source%20orders/retire/").content.decode()
    assert "Retire what uses it first." in page
    assert admin.post("/sources/source%20orders/retire/", {"confirm": "source orders"}).status_code == 409
    assert admin.post("/pipelines/orders/retire/", {"confirm": "order"}).status_code == 409
    assert admin.post("/pipelines/orders/retire/", {"confirm": "orders"})["Location"] == "/"
    assert admin.post("/sources/source%20orders/retire/", {"confirm": "source orders"}).status_code == 302
    assert admin.get("/sources/source%20orders/").status_code == 410
    assert admin.get("/pipelines/orders/edit/").status_code == 410
    assert Event.objects.filter(kind="retired").count() == 2


def names_key(text: str) -> bool:
    """Whether the sample's key stands in it as a word: within a random token these two letters mean nothing."""
    return re.search(r"\bk2\b", text) is not None
