"""What there is of what a pipeline needs, from the control database, the settings and a look at the ports of our own servers.

No source and no sink is opened here: what is said of them is what their last connection test found, and how old it is.
"""

from __future__ import annotations

import os
import socket
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.checks import run_checks

from recovery_api.domain.access import Permission, Role, who_may
from recovery_api.domain.commands import command_line
from recovery_api.domain.doctor import Checked
from recovery_api.domain.headroom.live import Standing
from recovery_api.domain.pipelines import pipeline_options_parse
from recovery_api.domain.work import QUEUES
from recovery_api.models import End, Pipeline, Sink
from recovery_api.selectors.drills import passed_at
from recovery_api.selectors.fleet import pipeline_status
from recovery_api.selectors.freezes import freeze_of, freeze_says
from recovery_api.selectors.headroom import pipeline_headroom
from recovery_api.selectors.pairs import pipeline_allows
from recovery_api.selectors.readiness import readiness
from recovery_api.selectors.workers import START_A_WORKER, since_says, worker_presence

OLD_TEST = timedelta(days=30)
PORT_SECONDS = 1.0


def installation_checked(now: datetime) -> list[Checked]:
    """What every pipeline rests on. The database answers: it has just told `now`."""
    found = [_readiness(), *_settings(), _evidence()]
    found += [
        _port(
            "broker",
            settings.REDIS_URL,
            6379,
            "Nobody is woken: what runs goes on, and nothing new is begun before it is back.",
        )
    ]
    engine = "What reads many rows waits for it; small audits are made without."
    found += [_port("Spark", settings.SPARK_REMOTE, 15002, engine), *_workers(now), _approvers()]
    whole = freeze_of(None)
    says = freeze_says(whole) if whole else "Nothing holds every pipeline."
    return [*found, Checked("freeze of everything", whole is None, says, "An approver lifts it: manage.py unfreeze.")]


def pipeline_checked(pipeline: Pipeline, now: datetime) -> list[Checked]:
    """What this one needs. `pipeline` with its ends."""
    name = pipeline.name
    status = pipeline_status(pipeline, now)
    ends: list[End] = [pipeline.source, pipeline.sink, *([pipeline.delivery] if pipeline.delivery else [])]
    checks: list[Checked] = []
    for end in ends:
        checks += _end(end, now)
    checks += [_strategy(pipeline), *_schedule(pipeline, status.schedule), _headroom(pipeline, now)]
    recovery, freeze = status.recovery, freeze_of(pipeline.pk)
    is_open = recovery is not None and recovery.finished_at is None
    troubled = recovery is not None and is_open and recovery.problem
    says = f"Recovery {recovery.id} is {recovery.state}." if recovery and is_open else "None is unfinished."
    settle = command_line("recovery", name, "settle", "--wait")
    checks.append(Checked("recovery", not troubled, says, f"Settle it: {settle}."))
    says = freeze_says(freeze) if freeze else "It may send."
    checks.append(Checked("freeze", freeze is None, says, f"An approver lifts it: {command_line('unfreeze', name)}."))
    drilled = passed_at(pipeline.fired_into)
    drill = command_line("drill", pipeline.fired_into.name, "--wait")
    says = f"Passed {since_says(now - drilled)} ago." if drilled else "None passed since its options changed."
    checks.append(Checked("drills", drilled is not None, says, f"Prove that recovery works: {drill}.", is_advice=True))
    owner = pipeline_options_parse(pipeline.options)["owner"]
    edit = command_line("pipelines", "edit", name, "--option", "owner=TEAM")
    checks.append(
        Checked("owner", bool(owner), owner or "Nobody is named.", f"Name who answers: {edit}.", is_advice=True)
    )
    known = None if status.status == "unknown" else True
    audit = command_line("audit", name, "--wait")
    return [*checks, Checked("verdict", known, status.says, f"Audit it: {audit}.")]


def _readiness() -> Checked:
    found = readiness()
    return Checked(
        "control database", found.is_ready, " ".join(found.missing) or "It answers, with this version's tables."
    )


def _settings() -> list[Checked]:
    problems = run_checks(tags=["fencepost"])
    if not problems:
        return [Checked("settings", True, "None is set wrong.")]
    return [Checked("settings", False, str(one.msg), str(one.hint or "")) for one in problems]


def _evidence() -> Checked:
    folder = Path(settings.FENCEPOST_EVIDENCE_DIR).absolute()
    there = next(path for path in (folder, *folder.parents) if path.exists())
    room = os.statvfs(there)
    free = room.f_bavail * room.f_frsize
    says = f"{free / 2**30:,.1f} GiB are free at {folder}, as seen from this machine."
    return Checked(
        "evidence folder", free > 2**30, says, "Make room: an audit that cannot write its evidence ends unknown."
    )


def _port(name: str, address: str, port: int, without: str) -> Checked:
    """Whether somebody listens there: as far as can be seen without speaking its protocol."""
    parts = urlsplit(address)
    if not address or not parts.hostname:
        return Checked(name, None, "No address is set here, so it was not looked for.", f"Set it. {without}")
    where = f"{parts.hostname}:{parts.port or port}"
    try:
        with socket.create_connection((parts.hostname, parts.port or port), PORT_SECONDS):
            return Checked(name, True, f"{where} takes connections.")
    except OSError as error:
        says = f"{where} takes none ({type(error).__name__})."
        return Checked(name, False, says, f"See that it is up. {without}")


def _workers(now: datetime) -> list[Checked]:
    presence = worker_presence(now)
    return [
        Checked(
            f"worker for queue {queue}",
            not presence.says(now, queue),
            presence.says(now, queue) or f"Of {presence.count} running.",
            START_A_WORKER,
        )
        for queue in QUEUES
    ]


def _approvers() -> Checked:
    may = [role.value for role in who_may(Permission.APPROVE)]
    people = get_user_model().objects.filter(is_active=True)
    count = (people.filter(groups__name__in=may) | people.filter(is_superuser=True)).distinct().count()
    says = f"{count} people may approve a plan; its author may not, unless the pipeline says so."
    remedy = f"Give a second person the role {Role.APPROVER.value}: a recovery at night needs one who is awake."
    return Checked("approvers", count >= 2, says, remedy, is_advice=count == 1)


def _end(end: End, now: datetime) -> list[Checked]:
    word = end._meta.model_name or ""
    test = command_line(f"{word}s", "test", end.name)
    name = f"{word} {end.name}"
    if end.report is None or end.tested_at is None:
        return [Checked(name, None, "It was not tested since its options changed.", f"Test it: {test}.")]
    says = "; ".join(str(one) for one in end.report.get("problems") or []) or "It can serve."
    found = [
        Checked(
            name,
            bool(end.report["is_usable"]),
            f"Tested {since_says(now - end.tested_at)} ago. {says}",
            f"Put that right, then: {test}.",
        )
    ]
    if now - end.tested_at > OLD_TEST:
        found.append(
            Checked(f"{name}, its test", False, "It is older than 30 days.", f"Test again: {test}.", is_advice=True)
        )
    for weakness in end.report.get("weaknesses") or []:
        found.append(Checked(f"{name}, weakness", False, str(weakness), "See docs/kinds.md.", is_advice=True))
    if not isinstance(end, Sink):
        return found
    if end.restored_at is not None:
        settle = command_line("sinks", "settle", end.name)
        found.append(Checked(f"{name}, memory", False, end.restored_says, f"Make it safe: {settle}."))
    for point in end.report.get("points") or []:
        if point["is_weaker"]:
            says = (
                f"{point['asks']} Declared: {point['declared']}; found: {point['tested']}. {point['because']}".strip()
            )
            found.append(
                Checked(f"{name}, {point['point']}", False, says, "Put it right at the sink, or declare less.")
            )
    return found


def _strategy(pipeline: Pipeline) -> Checked:
    allows = pipeline_allows(pipeline)
    if allows is None:
        return Checked(
            "strategy", None, "An end was not tested, so how it may be recovered is not known.", "Test its ends."
        )
    remedy = "It is audited and planned for; sending needs a sink with more abilities: docs/kinds.md."
    return Checked("strategy", allows.strategy.is_driven, allows.says, remedy)


def _schedule(pipeline: Pipeline, standing: object) -> list[Checked]:
    overdue, cadence, says = (getattr(standing, one) for one in ("overdue_since", "cadence", "says"))
    on = command_line("pipelines", "edit", pipeline.name, "--option", "is_scheduled=true")
    if not cadence.is_on:
        return [Checked("schedule", False, says, f"Turn it on: {on}.")]
    remedy = f"See what keeps it: {command_line('intents', 'list')}. {START_A_WORKER}"
    return [Checked("schedule", overdue is None, says, remedy)]


def _headroom(pipeline: Pipeline, now: datetime) -> Checked:
    one = pipeline_headroom(pipeline, now)
    holds: dict[Standing, bool | None] = {Standing.OK: True, Standing.UNKNOWN: None}
    missing = ", ".join(one.pace.missing)
    says = f"{one.found.standing.value}{f'; not known: {missing}' if missing else ''}."
    remedy = f"See what it rests on: {command_line('headroom', pipeline.name)}; docs/headroom.md."
    return Checked("headroom", holds.get(one.found.standing, False), says, remedy)
