"""What headroom may not promise: a moment that nothing certifies, an age by clocks that nobody compared, rows that are gone."""

from __future__ import annotations

from tests.guards.guard import Guard

SELECTED = "recovery_api/selectors/headroom.py"
ROWS = "tests/integration/pages/test_headroom.py"
UNIT = "tests/unit/headroom"
EVIDENCE = "tests/integration/pages/test_evidence_until.py"
REAL = "tests/integration/recovery/test_headroom.py"

GUARDS = (
    Guard(
        "a lost event that nothing dates is taken for a young one",
        SELECTED,
        "owed.remembered >= newest.lost and ",
        "",
        (f"{ROWS}::test_lost_event_that_nothing_dates_leaves_it_unknown",),
    ),
    Guard(
        "an old look is taken for one at a relay that delivers",
        SELECTED,
        "arrivals_of(audits) if is_current else _stopped(arrivals_of(audits))",
        "arrivals_of(audits)",
        (f"{ROWS}::test_old_look_takes_the_relay_for_stopped",),
    ),
    Guard(
        "a frontier below the newest event certifies its own moment",
        "recovery_api/domain/headroom/observed.py",
        " and (lane not in frontier or frontier[lane] < head):",
        " and (lane not in frontier):",
        (f"{ROWS}::test_frontier_below_the_newest_event_certifies_no_moment_of_its_own",),
    ),
    Guard(
        "an age is told by clocks that nobody compared",
        "recovery_api/domain/headroom/terms.py",
        "    if clock is None:\n        return Term(forgets, Reach.UNKNOWN",
        "    if False:\n        return Term(forgets, Reach.UNKNOWN",
        (f"{ROWS}::test_undeclared_clocks_make_every_age_unknown",),
    ),
    Guard(
        "what the archive lacks counts as held",
        SELECTED,
        "(owed.gone_count - archived, archived), now)",
        "(0, archived), now)",
        (f"{ROWS}::test_rows_gone_that_the_archive_lacks_are_gone_though_it_holds_others",),
    ),
    Guard(
        "what the archive holds promises time to the rest",
        "recovery_api/domain/headroom/declared.py",
        "            unknown(Forgets.SOURCE_PURGE, says),\n            _disk(",
        "            no_limit(Forgets.SOURCE_PURGE, says),\n            _disk(",
        (f"{ROWS}::test_rows_gone_at_the_source_that_the_archive_holds_are_not_gone_and_promise_nothing_of_the_rest",),
    ),
    Guard(
        "rows that are gone can still be sent",
        "recovery_api/domain/headroom/declared.py",
        "    if gone_count:\n",
        "    if False:\n",
        (f"{ROWS}::test_rows_gone_at_the_source_are_gone_whatever_is_declared",),
    ),
    Guard(
        "a success whose evidence expired hides behind a shallower one",
        "recovery_api/domain/statuses.py",
        "return Status.UNKNOWN if is_expired(self.evidence_until, now) else self.status",
        "return self.status",
        ("tests/unit/test_statuses.py::test_expired_deep_success_is_not_hidden_by_a_shallow_one_that_lasts",),
    ),
    Guard(
        "undeclared is taken for expired",
        "recovery_api/domain/headroom/evidence.py",
        "return until is not None and now >= until",
        "return until is None or now >= until",
        (f"{UNIT}/test_evidence.py::test_what_nobody_declared_or_measured_has_no_moment_and_is_said",),
    ),
    Guard(
        "an expired certificate exits as it was issued",
        "recovery_api/domain/headroom/evidence.py",
        "return EXIT_UNKNOWN if is_expired(until, now) else OUTCOMES[word].exit_code",
        "return OUTCOMES[word].exit_code",
        (f"{UNIT}/test_evidence.py::test_from_that_moment_on_it_reads_unknown",),
    ),
    Guard(
        "a verdict claims the interval of an audit too much",
        "recovery_api/selectors/evidence.py",
        "min(before.since, after.since) if before.since and after.since else None",
        "after.since",
        (f"{EVIDENCE}::test_verdict_that_expired_reads_unknown_everywhere_and_says_what_it_found",),
    ),
    Guard(
        "a slot that was dropped is taken for a wrong name",
        "recovery_api/domain/headroom/seen.py",
        "        if was_there:\n",
        "        if False:\n",
        (f"{REAL}::test_audit_reads_clocks_and_sizes_and_the_slot_that_is_named",),
    ),
    Guard(
        "an unreserved slot is given the room it had",
        "recovery_api/domain/headroom/seen.py",
        'if slot.wal_status == "unreserved":',
        "if False:",
        ("tests/integration/pages/test_headroom_ends.py::test_slot_that_goes_or_is_not_ours",),
    ),
    Guard(
        "a measured clock is believed to the microsecond",
        "recovery_api/domain/headroom/seen.py",
        "return Clock(error=own.error + end.clock.error)",
        "return Clock()",
        (
            "tests/integration/pages/test_headroom_ends.py"
            "::test_acceptance_case_by_what_was_seen_of_the_ends_is_the_same_everywhere",
        ),
    ),
    Guard(
        "a figure outlives what happened to its pipeline",
        "recovery_api/selectors/headroom_figures.py",
        '        .filter(event_id=F("newest"))\n',
        "",
        ("tests/integration/pages/test_headroom_figures.py::test_what_happens_to_a_pipeline_ends_its_figure",),
    ),
    Guard(
        "a purge goes by a verdict whose evidence expired",
        "recovery_api/domain/purging.py",
        "is not None and is_expired(deciding.evidence_until, now)",
        "is not None and False",
        ("tests/unit/test_purging.py::test_without_evidence_it_is_unknown",),
    ),
    Guard(
        "a scrape counts by a verdict whose evidence expired",
        "recovery_api/selectors/metrics.py",
        "*((None, None) if is_expired(until, now) else found)",
        "*found",
        (f"{EVIDENCE}::test_verdict_that_expired_reads_unknown_everywhere_and_says_what_it_found",),
    ),
    Guard(
        "the overview counts by a verdict whose evidence expired",
        "templates/overview.html",
        "{% if one.audit and not one.is_expired %}{{ line.hazards|number }}",
        "{% if one.audit %}{{ line.hazards|number }}",
        (f"{EVIDENCE}::test_verdict_that_expired_reads_unknown_everywhere_and_says_what_it_found",),
    ),
    Guard(
        "the page that sends does not say how long there is",
        "dashboard/views/plans.py",
        "if is_asked else None\n",
        "if False else None\n",
        (f"{ROWS}::test_approval_that_waits_is_shown_with_its_end_and_takes_nothing_away",),
    ),
    Guard(
        "a lane of a verdict that expired reads as it was issued",
        "recovery_api/domain/headroom/evidence.py",
        "    if until is None or not is_expired(until, now):\n        return lanes\n",
        "    if True:\n        return lanes\n",
        (f"{EVIDENCE}::test_verdict_that_expired_reads_unknown_everywhere_and_says_what_it_found",),
    ),
    Guard(
        "the page of a pipeline says of an expired verdict what the record holds",
        "dashboard/views/lanes.py",
        "audit.status if not is_expired(audit.evidence_until, now) else Status.UNKNOWN.value",
        "audit.status",
        (f"{EVIDENCE}::test_verdict_that_expired_reads_unknown_everywhere_and_says_what_it_found",),
    ),
    Guard(
        "the command names an expired recovery as it ended",
        "recovery_api/management/lines.py",
        '    if row["certificate_is_expired"]:\n        return look_of(EXPIRED).says\n',
        "",
        (f"{EVIDENCE}::test_certificate_carries_the_moment_and_its_digest_covers_it",),
    ),
    Guard(
        "a post-mortem says of an expired reading that all is well",
        "recovery_api/domain/incidents.py",
        "if is_expired(well.evidence_until, now) else words",
        "if False else words",
        ("tests/unit/test_incidents.py::test_well_again_is_told_with_what_expired_since",),
    ),
    *(
        Guard(
            what,
            "recovery_api/domain/alerts/pipelines.py",
            here,
            gone,
            (
                "tests/unit/alerts/test_expired.py::"
                "test_what_is_owed_is_shown_until_its_evidence_expired_and_then_neither_shown_nor_taken_back",
            ),
        )
        for what, here, gone in (
            (
                "an expired reading pages as owed",
                "[one for one in opening if not _is_expired(one, now)]",
                "opening",
            ),
            (
                "an alert ends because its evidence expired",
                "elif not opening and alert in OUTCOMES[newest.reading.status].resolves:",
                "elif alert in OUTCOMES[newest.reading.status].resolves:",
            ),
            (
                "a shallow reading hides that a deeper one expired",
                "    elif expired:\n",
                "    elif False:\n",
            ),
        )
    ),
)
