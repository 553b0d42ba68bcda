"""What may not go: rows that somebody still needs, evidence that the ledger goes by, listings that a person asked for."""

from __future__ import annotations

from tests.guards.guard import Guard

PURGING = "recovery_api/domain/purging.py"
PURGES = "tests/integration/recovery/test_purging.py"
KEPT = "tests/integration/recovery/test_kept_evidence.py"
RETAINED = "recovery_api/domain/retention.py"
RETENTION = "tests/unit/test_retention.py"
OF_WORK = "tests/integration/control/test_retention_of_work.py"
SETTLED = "recovery_api/services/settled.py"
OBSERVED = "recovery_api/services/history.py"
HISTORY = "tests/integration/control/test_history.py"

GUARDS = (
    Guard(
        "what the ledger has open may be purged",
        PURGING,
        "(*(one.lowest for one in (deciding, *later)), owing.remembered, *owing.work)",
        "(*(one.lowest for one in (deciding, *later)), *owing.work)",
        (f"{PURGES}::test_an_event_that_the_ledger_has_open_forbids_it_on_every_face",),
    ),
    Guard(
        "what an overdue pipeline was last seen to need may be purged",
        PURGING,
        "    if owing.overdue_since is not None:\n",
        "    if False:\n",
        (f"{PURGES}::test_an_overdue_pipeline_and_one_whose_last_audit_could_not_read_forbid_it",),
    ),
    Guard(
        "what a plan in the making will send may be purged",
        "recovery_api/selectors/purging.py",
        "    for plan in Plan.objects.filter(pipeline=pipeline, state__in=[PlanState.DRAFT, PlanState.COMPUTING]):\n",
        "    for plan in Plan.objects.none():\n",
        (f"{PURGES}::test_a_plan_that_is_being_made_forbids_everything_until_it_is_known_what_it_sends",),
    ),
    Guard(
        "a second reading throws away the evidence that the ledger goes by",
        "recovery_api/services/evidence_places.py",
        'f"{name}-{uuid4().hex[:8]}"',
        "name",
        (f"{KEPT}::test_a_second_reading_of_the_same_work_keeps_what_the_first_one_told_the_ledger",),
    ),
    Guard(
        "a scheduled audit that the ledger goes by is forgotten",
        "recovery_api/selectors/retention.py",
        '        Exists(_evidenced(LedgerLane.objects.all(), "evidence")),  #',
        "        #",
        (f"{KEPT}::test_a_scheduled_audit_that_the_ledger_goes_by_is_not_forgotten",),
    ),
    Guard(
        "a schedule pushes out what a person asked for",
        "recovery_api/services/findings.py",
        "Audit.objects.filter(pipeline=audit.pipeline_id, is_scheduled=audit.is_scheduled)",
        "Audit.objects.filter(pipeline=audit.pipeline_id)",
        (
            "tests/integration/recovery/test_listing.py"
            "::test_scheduled_audits_push_out_no_listing_that_a_person_asked_for",
        ),
    ),
    Guard(
        "parts that a certificate needs go by age alone",
        "recovery_api/domain/retention.py",
        "    if parts.evidence_until is not None and parts.evidence_until > max(until, now):\n",
        "    if False:\n",
        (
            "tests/integration/control/test_retention.py::test_what_an_older_certificate_needs_stays_until_its_evidence_ends",
        ),
    ),
    Guard(
        "parts in which an open item was seen go by age",
        RETAINED,
        "        (parts.of_open_item, ",
        "        (False, ",
        (f"{RETENTION}::test_what_something_rests_on_stays_however_old_and_says_why",),
    ),
    Guard(
        "parts of a plan that waits for its recovery go by age",
        RETAINED,
        "        (parts.is_waiting, ",
        "        (False, ",
        (f"{RETENTION}::test_what_something_rests_on_stays_however_old_and_says_why",),
    ),
    Guard(
        "an item that alone shows that an acceptance was committed goes by age",
        SETTLED,
        "void_since__isnull=True, admitted_below__isnull=False)",
        "void_since__isnull=True)",
        (
            f"{OF_WORK}::test_what_a_later_audit_looks_at_again_stays_however_old_and_the_rest_goes",
            "tests/integration/recovery/test_settled_items.py"
            "::test_an_item_that_alone_shows_that_an_acceptance_was_committed_never_goes",
        ),
    ),
    Guard(
        "settled items of a ledger that is void go by age",
        SETTLED,
        "lanes.filter(~Exists(newer), void_since__isnull=True, ",
        "lanes.filter(~Exists(newer), ",
        (f"{OF_WORK}::test_what_a_later_audit_looks_at_again_stays_however_old_and_the_rest_goes",),
    ),
    Guard(
        "the base that the next image audit goes by goes by age",
        RETAINED,
        "        (parts.is_base, ",
        "        (False, ",
        (f"{RETENTION}::test_what_something_rests_on_stays_however_old_and_says_why",),
    ),
    Guard(
        "a sink's newest drills go by age",
        "recovery_api/selectors/drills.py",
        ".exclude(pk__in=kept)",
        "",
        (f"{OF_WORK}::test_drills_go_by_age_but_the_newest_that_something_is_told_of",),
    ),
    Guard(
        "an hour of the history shows its best moment",
        OBSERVED,
        "        (%(statuses)s::text[])[min(array_position(%(statuses)s::text[], status::text))],\n",
        "        (%(statuses)s::text[])[max(array_position(%(statuses)s::text[], status::text))],\n",
        (f"{HISTORY}::test_database_thins_as_the_domain_says_and_keeps_the_worst",),
    ),
    Guard(
        "a void verdict goes on counting in the history",
        OBSERVED,
        '    standing.update(until=Greatest(F("at"), Value(now)))\n',
        "    assert standing is not None\n",
        (f"{HISTORY}::test_verdict_that_is_void_counts_no_longer_and_stays_as_it_was_told",),
    ),
    Guard(
        "a task holds a range however many rows it has",
        "workers/evidence/holding.py",
        "            raise TooManyHeld\n",
        "            pass\n",
        ("tests/unit/test_holding.py::test_a_range_judged_in_stretches_says_what_it_says_as_a_whole",),
    ),
)
