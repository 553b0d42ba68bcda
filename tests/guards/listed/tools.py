"""What tools and people on call lean on: metrics, conditional changes, runbooks, incidents."""

from __future__ import annotations

from tests.guards.guard import Guard

TOOLS = "tests/integration/api/test_for_tools.py"
METRICS = "tests/integration/pages/test_metrics.py"
RUNBOOKS = "tests/unit/test_runbooks.py"
OVERTAKEN = "tests/integration/pages/test_overtaken.py"
MIRRORED = "tests/integration/api/test_incidents.py"
KEYS = "tests/integration/api/test_idempotency.py"
INCIDENTS = "tests/unit/test_incidents.py"

GUARDS = (
    Guard(
        "/metrics is answered to whoever asks",
        "dashboard/views/metrics.py",
        "    if not _may_scrape(request):\n",
        "    if False:\n",
        (f"{METRICS}::test_it_is_closed_without_the_token_or_an_address",),
    ),
    Guard(
        "an empty token opens /metrics",
        "dashboard/views/metrics.py",
        "    if token and scheme",
        "    if scheme",
        (f"{METRICS}::test_it_is_closed_without_the_token_or_an_address",),
    ),
    Guard(
        "a change overwrites what somebody else changed meanwhile",
        "recovery_api/selectors/versions.py",
        "    if read is not None and version_of(one) not in read:\n",
        "    if False:\n",
        (f"{TOOLS}::test_a_change_of_what_somebody_changed_meanwhile_is_refused",),
    ),
    Guard(
        "a page's form of yesterday overwrites what somebody else changed meanwhile",
        "dashboard/views/overtaken.py",
        "    return frozenset([given]) if given else None\n",
        "    return None\n",
        (f"{OVERTAKEN}::test_a_form_of_yesterday_saves_nothing_says_what_was_changed_and_keeps_what_was_entered",),
    ),
    Guard(
        "a change of an incident overwrites what somebody else wrote meanwhile",
        "recovery_api/services/incidents.py",
        "        version_check(locked, read)\n",
        "",
        (f"{MIRRORED}::test_a_change_of_an_incident_that_somebody_changed_meanwhile_is_refused",),
    ),
    Guard(
        "an idempotency key grows younger whenever it is asked again",
        "recovery_api/views/idempotent.py",
        "                return _again(found)\n",
        "                found.expires_at += now - found.created_at\n                found.save()\n                return _again(found)\n",
        (f"{KEYS}::test_asking_again_starts_nothing_and_the_keys_age_counts_from_the_first_attempt",),
    ),
    Guard(
        "waiting looks occupy every thread of a web process",
        "recovery_api/views/waiting.py",
        "_places.acquire(blocking=False)",
        "[_places]",
        (f"{TOOLS}::test_a_process_whose_places_are_taken_answers_at_once",),
    ),
    Guard(
        "a step is logged that was rolled back",
        "recovery_api/services/events.py",
        "        transaction.on_commit(partial(_logged, event))  #",
        "        _logged(event)  #",
        (f"{TOOLS}::test_a_step_is_one_line_of_the_log_once_it_is_committed",),
    ),
    Guard(
        "a reason that somebody typed begins a line of the log",
        "recovery_api/logs.py",
        "_one_line(record.getMessage())",
        "record.getMessage()",
        ("tests/unit/test_logs.py::test_a_line_is_one_line_whatever_somebody_typed",),
    ),
    Guard(
        "a script in a team's runbook runs",
        "recovery_api/runbooks.py",
        "    return _clean(THEIRS.render(text))",
        "    return str(THEIRS.render(text))",
        (f"{RUNBOOKS}::test_what_a_team_writes_runs_nothing",),
    ),
    Guard(
        "a pipeline's name is a command of a runbook",
        "recovery_api/domain/runbooks.py",
        "shlex.quote(values[found[1]])",
        "values[found[1]]",
        (f"{RUNBOOKS}::test_a_pipelines_values_are_texts_and_nothing_else",),
    ),
    Guard(
        "a team's runbook is read from anywhere",
        "recovery_api/runbooks.py",
        '    """What a team keeps beside it; None: nothing. Raises: NotFound, BadFile."""\n    _known(name)\n',
        '    """What a team keeps beside it; None: nothing. Raises: NotFound, BadFile."""\n',
        (f"{RUNBOOKS}::test_a_name_is_no_path",),
    ),
    Guard(
        "an incident counts as well again although it came back",
        "recovery_api/domain/incidents.py",
        "if one.at > wrong[-1].at and one.status in CLEAN",
        "if one.at > wrong[0].at and one.status in CLEAN",
        (f"{INCIDENTS}::test_what_came_back_after_it_was_well_is_not_well",),
    ),
    Guard(
        "what people wrote marks up a post-mortem",
        "recovery_api/domain/incidents.py",
        '    for mark in "\\\\`*_[]|#":\n        line = line.replace(mark, f"\\\\{mark}")\n',
        "",
        (f"{INCIDENTS}::test_a_post_mortem_says_the_figures_and_runs_nothing_that_somebody_wrote",),
    ),
)
