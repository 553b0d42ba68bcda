"""The commands, as a person or a runbook types them: words, JSON and exit codes."""

from __future__ import annotations

import io
import json
import threading
from dataclasses import dataclass
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from recovery_api.domain.errors import FrontierRefused, Refused, Unreachable
from recovery_api.models import Intent, Pipeline, Plan, Recovery, Source
from recovery_api.services.plans import plan_approve
from tests.integration.control import paper_runner


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def body(self) -> dict[str, Any]:
        return json.loads(self.out.splitlines()[-1])


def run(*words: Any) -> Said:
    out, err, code = io.StringIO(), io.StringIO(), 0
    try:
        call_command(*(str(word) for word in words), stdout=out, stderr=err)
    except SystemExit as ended:
        code = int(ended.code or 0)
    return Said(code, out.getvalue(), err.getvalue())


@pytest.fixture(autouse=True)
def _paper_worker(settings):
    settings.FENCEPOST_INTENT_RUNNER = "tests.integration.control.paper_runner.intent_run"
    paper_runner.ANSWERS.clear()
    yield
    paper_runner.ANSWERS.clear()


@pytest.fixture
def approved(pipeline):
    plan = Plan.objects.get(id=run("plan", "mail", "--here", "--json", "--actor", "author").body["plan"])
    plan_approve(plan.id, "d1", "approver", timezone.now())
    return plan


def test_source_is_tested_and_registered(db):
    said = run("sources", "add", "orders", "--kind", "paper_source", "--option", "path=p", "--here", "--json")
    assert said.code == 0 and said.body["registered"] and said.body["report"]["facts"] == {"rows": 3}
    assert "never tested" not in run("sources", "list").out
    assert "path = p" in run("sources", "show", "orders").out


def test_source_that_cannot_serve_is_not_registered(db):
    problems = ["Column seq is null in 3 rows. Fill it, or map another."]
    paper_runner.ANSWERS["connection_test"] = {
        "is_usable": False,
        "facts": {"code": "unsuitable"},
        "problems": problems,
    }
    said = run("sources", "add", "orders", "--kind", "paper_source", "--option", "path=p", "--here")
    assert said.code == 2 and problems[0] in said.out and "was not registered" in said.out
    paper_runner.ANSWERS["connection_test"]["facts"]["code"] = "unreachable"
    assert run("sources", "add", "orders", "--kind", "paper_source", "--option", "path=p", "--here").code == 3
    assert not Source.objects.exists()


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["--kind", "paper_sauce"], "Did you mean 'paper_source'"),
        (["--kind", "paper_source", "--option", "pth=p"], "paper_source.pth: no such option. Did you mean 'path'"),
        (["--kind", "paper_source", "--option", "path"], "'path' is not name=value"),
        (["--kind", "paper_source", "--option", "path=a", "--option", "path=b"], "path is given twice"),
        (["--kind", "paper_source", "--option", "path=p", "--option", "password=hunter2"], "never stored"),
        ([], "kind: is missing"),
    ],
)
def test_option_nobody_understands_is_named_and_nothing_starts(db, words, names):
    said = run("sources", "add", "orders", *words, "--here")
    assert said.code == 2 and names in said.err and "hunter2" not in said.err
    assert not Intent.objects.exists() and not Source.objects.exists()


def test_error_in_json_has_its_code_and_its_data(db):
    said = run("sources", "add", "orders", "--kind", "paper_sauce", "--here", "--json")
    assert said.body["error"]["code"] == "unknown_option" and said.body["error"]["data"]["field"] == "source.kind"


def test_flag_nobody_understands_is_refused(pipeline):
    for words in (["audit", "mail", "--frontir", "4"], ["audit", "mail", "--front", "4"], ["redrive"]):
        with pytest.raises(CommandError):
            run(*words)
    assert not Intent.objects.exists()


@pytest.mark.parametrize("suffix", ["json", "toml"])
def test_source_from_a_file(db, tmp_path, suffix):
    file = tmp_path / f"orders.{suffix}"
    text = {
        "json": '{"name": "orders", "kind": "paper_source", "options": {"path": "p", "columns": {"key": "k"}}}',
        "toml": 'name = "orders"\nkind = "paper_source"\n[options]\npath = "p"\n[options.columns]\nkey = "k"\n',
    }
    file.write_text(text[suffix])
    assert run("sources", "add", "--file", file, "--no-test").code == 0
    assert Source.objects.get().options == {"path": "p", "columns": {"key": "k"}}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"name": "orders", "knd": "paper_source"}', "knd: no such option. Did you mean 'kind'"),
        ('{"name": "orders", "name": "other"}', "member name: is given twice"),
        ('{"name": "orders", ', "it is not valid"),
        ("[]", "is not an object"),
        ('{"name": "orders", "kind": "paper_source", "options": [1]}', "options: is not an object"),
        ('{"name": "other", "kind": "paper_source", "options": {"path": "p"}}', "is 'other' in the file"),
    ],
)
def test_file_that_cannot_be_used_is_refused(db, tmp_path, text, names):
    file = tmp_path / "orders.json"
    file.write_text(text)
    said = run("sources", "add", "orders", "--file", file, "--no-test")
    assert said.code == 2 and names in said.err
    assert run("sources", "add", "x", "--file", tmp_path / "absent.json", "--no-test").code == 2
    assert not Source.objects.exists()


def test_pipeline_is_registered_after_testing_both_ends(pipeline):
    run("sinks", "add", "post", "--kind", "paper_sink", "--option", "path=p", "--no-test")
    add = ("pipelines", "add", "post", "--source", "mail-orders", "--sink", "post")
    paper_runner.ANSWERS["connection_test"] = {"is_usable": False, "facts": {}, "problems": ["No. Do this."]}
    said = run(*add, "--here")
    assert said.code == 2 and "No. Do this." in said.out and not Pipeline.objects.filter(name="post").exists()
    paper_runner.ANSWERS.clear()
    assert run(*add, "--scope", "", "--here").code == 2
    assert run(*add, "--scope", "k1,k2", "--here").code == 0
    assert Pipeline.objects.get(name="post").scope == ["k1", "k2"]
    assert run("pipelines", "test", "post", "--here").code == 0
    listed = run("pipelines", "list")
    assert "post" in listed.out and "unknown" in listed.out and listed.code == 0


def test_audit_exits_as_judge_does(pipeline):
    said = run("audit", "mail", "--here")
    assert said.code == 1 and "mail: owed, f = 42" in said.out and "manage.py plan mail" in said.out
    paper_runner.ANSWERS["audit"] = {"status": "exactly_once", "exit_code": 0, "lost_count": 0}
    assert run("audit", "mail", "--here", "--json").body["status"] == "exactly_once"
    paper_runner.ANSWERS["audit"] = {"status": "unknown", "exit_code": 3}
    assert run("audit", "mail", "--here").code == 3


def test_audit_that_nobody_waits_for_is_not_called_clean(pipeline):
    said = run("audit", "mail", "--json")
    assert said.code == 3 and said.body["state"] == "queued"
    shown = run("intents", "wait", said.body["intent"], "--timeout", "0")
    assert (
        shown.code == 3
        and "no worker has taken it yet. No worker has been heard of." in shown.out
        and "--here" in shown.out
    )
    assert run("intents", "cancel", said.body["intent"]).code == 0


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (FrontierRefused("50", "42", "safe frontier", "transaction ids"), 2),
        (Unreachable("mail", "connection refused"), 3),
    ],
)
def test_what_the_worker_met_is_said_with_its_code(pipeline, error, code):
    paper_runner.ANSWERS["audit"] = error
    said = run("audit", "mail", "--frontier", "50", "--here")
    assert said.code == code and str(error) in said.out


def test_unknown_pipeline_and_bad_coordinate_start_nothing(pipeline):
    said = run("audit", "male", "--here")
    assert said.code == 2 and "Did you mean 'mail'" in said.err
    assert "is not a coordinate here" in run("audit", "mail", "--frontier", "16/B374", "--here").err
    assert run("plan", "mail", "--frontier", "", "--here").code == 2
    assert not Intent.objects.exists()


def test_plan_approve_redrive(pipeline):
    planned = run("plan", "mail", "--here", "--json", "--actor", "author")
    assert planned.code == 1 and planned.body["planned"] == 3
    plan = planned.body["plan"]
    assert f"approve {plan} --digest d1" in run("plan", plan).out
    assert run("pipelines", "edit", "mail", "--option", "approval_by_command=true").code == 0
    plan = run("plan", "mail", "--here", "--json", "--actor", "author").body["plan"]
    assert run("approve", plan, "--digest", "d1", "--actor", "author").code == 2
    assert run("approve", plan, "--digest", "d0", "--actor", "approver").code == 2
    assert run("approve", plan, "--digest", "d1", "--actor", "approver").code == 0
    done = run("redrive", plan, "--reason", "relay died", "--confirm", "mail", "--here", "--json")
    assert done.code == 0 and (done.body["outcome"], done.body["landed"]) == ("exactly_once", 3)
    again = run("redrive", plan, "--reason", "relay died", "--confirm", "mail", "--here", "--json")
    assert again.code == 0 and again.body["recovery"] == done.body["recovery"]
    told = run("recovery", "mail", "timeline")
    assert [word in told.out for word in ("plan approved", "recovery requested", "recovery finished")] == [True] * 3
    assert "pipeline created" in run("pipelines", "timeline", "mail").out
    assert "ended exactly once" in run("recovery", done.body["recovery"]).out


def test_t25_a_typed_name_is_marked_and_is_no_second_pair_of_eyes(pipeline):
    plan = run("plan", "mail", "--here", "--json", "--actor", "author").body["plan"]
    said = run("approve", plan, "--digest", "d1", "--actor", "approver")
    assert said.code == 2 and "approver is a typed name, not a person who signed in" in said.err
    assert f"/plans/{plan}/" in said.err and "--option approval_by_command=true" in said.err
    with pytest.raises(Refused, match="author is its author"):  # the name that somebody typed may be this person's
        plan_approve(plan, "d1", "author", timezone.now())
    plan_approve(plan, "d1", "approver", timezone.now())
    run("redrive", plan, "--reason", "relay died", "--confirm", "mail", "--here", "--actor", "ada")
    told = run("recovery", "mail", "timeline").out
    assert "by command, as author (not signed in)" in told and "by command, as ada (not signed in)" in told
    assert "approved by approver, by digest d1" in told


def test_t25_a_pipeline_may_take_a_typed_name_for_a_person_and_shows_it(pipeline):
    assert run("pipelines", "edit", "mail", "--option", "approval_by_command=true").code == 0
    plan = run("plan", "mail", "--here", "--json", "--actor", "author").body["plan"]
    assert run("approve", plan, "--digest", "d1", "--actor", "approver").code == 0
    assert Plan.objects.get(id=plan).approved_by == "by command, as approver (not signed in)"
    assert "approved by command, as approver (not signed in)" in run("plan", plan).out


def test_t5_several_pipelines_exit_as_the_worst_of_them(pipeline):
    run("sinks", "add", "post", "--kind", "paper_sink", "--option", "path=p", "--no-test")
    run("pipelines", "add", "post", "--source", "mail-orders", "--sink", "post", "--no-test")
    codes = []
    for mail, post in (
        ("exactly_once",) * 2,
        ("exactly_once_given", "exactly_once"),
        ("exactly_once_given", "unknown"),
    ):
        for name, status in (("mail", mail), ("post", post)):
            givens = ["a grace of 30 s"] if status == "exactly_once_given" else []
            code = {"exactly_once": 0, "exactly_once_given": 4, "unknown": 3}[status]
            answer = {"status": status, "exit_code": code, "lost_count": 0, "givens": givens}
            paper_runner.ANSWERS["audit"] = answer
            assert run("audit", name, "--here").code == code
        codes.append(run("pipelines", "list", "--check").code)
    assert codes == [0, 4, 3] and run("pipelines", "list").code == 0


def test_redrive_of_nothing_in_particular_is_refused(approved):
    assert run("redrive", approved.id, "--reason", "x", "--confirm", "male").code == 2
    assert run("redrive", approved.id, "--reason", " ", "--confirm", "mail").code == 2
    assert run("redrive", "all", "--reason", "x", "--confirm", "mail").code == 2
    assert not Recovery.objects.exists()


def test_what_a_plan_asks_to_attest_is_said_in_words_and_given_with_attest(approved):
    Plan.objects.filter(id=approved.id).update(pins={"strategy": "attested", "attestations": ["only-recoverer"]})
    told = run("plan", approved.id).out
    assert "To attest: Nothing else sends missing events" in told and "--attest only-recoverer" in told
    words = ("redrive", approved.id, "--reason", "x", "--confirm", "mail", "--here", "--json")
    assert "nobody attested" in run(*words).err
    assert "'certainly' is not an attestation" in run(*words, "--attest", "only-recoverer", "--attest", "certainly").err
    done = run(*words, "--attest", "only-recoverer")
    assert done.body["attestations"] == ["only-recoverer"]
    assert done.body["attested"][0]["given"] == "that this was the only recoverer"


def test_recovery_that_left_something_exits_one_and_unknown_three(approved):
    paper_runner.ANSWERS["recover"] = {"outcome": "unknown"}
    said = run("redrive", approved.id, "--reason", "x", "--confirm", "mail", "--here")
    assert said.code == 3 and "settle" in said.out
    paper_runner.ANSWERS["settle"] = {"outcome": "incomplete"}
    said = run("recovery", "mail", "settle", "--here")
    assert said.code == 1 and "manage.py plan mail" in said.out


def test_recovery_in_trouble_says_how_to_settle_it(approved):
    paper_runner.ANSWERS["recover"] = FrontierRefused("50", "42", "safe frontier", "x")
    said = run("redrive", approved.id, "--reason", "x", "--confirm", "mail", "--here", "--json")
    assert said.code == 2 and said.body["state"] == "requested" and said.body["error"]["code"] == "frontier_refused"
    assert "settle" in run("recovery", "mail").out
    assert "stopped at requested and is to be settled" in run("pipelines", "show", "mail").out


def test_stop_needs_a_reason(approved):
    run("redrive", approved.id, "--reason", "x", "--confirm", "mail")
    assert run("recovery", "mail", "stop").code == 2
    said = run("recovery", "mail", "stop", "--reason", "wrong plan")
    assert said.code == 1 and "ended stopped" in said.out


def test_omissions_by_command(pipeline):
    assert run("omissions", "acknowledge", "mail", "41", "--reason", "dead letter").code == 0
    assert "41" in run("omissions", "list", "mail").out
    assert run("omissions", "acknowledge", "mail", "forty", "--reason", "x").code == 2
    assert run("omissions", "withdraw", "mail", "41").code == 0
    assert run("omissions", "list", "mail").out.strip() == "No omission is acknowledged."


@pytest.mark.django_db(transaction=True)
def test_waiting_for_a_worker_shows_its_steps(pipeline):
    taken = threading.Event()

    def work() -> None:
        """A worker of its own connection, which finds the intent in its row."""
        try:
            while not taken.wait(0.02):
                for intent_id in Intent.objects.filter(state="queued").values_list("id", flat=True):
                    paper_runner.intent_run(str(intent_id), "paper worker")
                    taken.set()
        finally:
            connection.close()

    worker = threading.Thread(target=work)
    worker.start()
    try:
        said = run("audit", "mail", "--wait", "--timeout", "30", "--json")
    finally:
        taken.set()
        worker.join()
    assert said.code == 1 and said.body["lost"] == 3
    assert said.err == "" or "reading: 3 of 3 events" in said.err
