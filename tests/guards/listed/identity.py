"""Records that know only message ids: when an absence is lost, and what an id may stand for."""

from __future__ import annotations

from tests.guards.guard import Guard

KERNEL = "workers/evidence/kernel/ids.py"
IDS = "workers/evidence/ids.py"
RECORD = "workers/connectors/sinks/postgresql_ids.py"
UNIT = "tests/unit/test_ids.py"
ENDS = "tests/integration/postgresql/test_id_records.py"
ORACLE = (f"{UNIT}::test_the_kernel_of_ids_is_the_definitions_whatever_the_sets",)

GUARDS = (
    Guard(
        "an absence is lost after its row may have been deleted",
        KERNEL,
        "        trimmed = left & ~untimed & (times < question.lost_since_us)\n",
        "",
        (*ORACLE, f"{ENDS}::test_rc_68_a_lifetime_shorter_than_the_period_makes_absences_unknown_and_never_sends_them"),
    ),
    Guard(
        "an absence is lost where the commit time is not known",
        KERNEL,
        "        untimed = left & (~is_timed | (times > question.believed_to_us))\n",
        "",
        ORACLE,
    ),
    Guard(
        "an absence is lost while the record holds ids that cannot be read",
        KERNEL,
        "    unreadable = left & question.has_unreadable\n",
        "    unreadable = left & False\n",
        (*ORACLE, f"{ENDS}::test_an_id_that_cannot_be_the_sources_is_told_and_what_is_absent_may_be_it"),
    ),
    Guard(
        "an id of two events is judged",
        KERNEL,
        "    _twice_refuse(event_times, of_event, history, names)\n",
        "",
        (f"{UNIT}::test_an_id_of_two_events_is_refused_with_their_places",),
    ),
    Guard(
        "the margin is not taken from the lifetime",
        "recovery_api/domain/identity.py",
        "max(self.seconds - self.margin_seconds, 0)",
        "self.seconds",
        (f"{ENDS}::test_rc_68_a_lifetime_shorter_than_the_period_makes_absences_unknown_and_never_sends_them",),
    ),
    Guard(
        "an id stands for an event without a constraint",
        IDS,
        "    if source.problem:\n        raise Unsuitable(what, source.problem, source.remedy)\n",
        "",
        (
            f"{ENDS}::test_only_a_constraint_that_always_holds_makes_an_id_an_identity",
            f"{ENDS}::test_rc_05_an_envelopes_id_is_no_identity",
        ),
    ),
    Guard(
        "a deferrable or partial constraint makes an id an identity",
        "workers/connectors/postgresql/indexes.py",
        "i.indisunique AND i.indisvalid AND i.indisready AND i.indimmediate\n  AND i.indpred IS NULL AND i.indexprs IS NULL AND k",
        "i.indisunique AND k",
        (f"{ENDS}::test_only_a_constraint_that_always_holds_makes_an_id_an_identity",),
    ),
    Guard(
        "an id stands for an event without its owner's word",
        IDS,
        "    if not spec.source.options.get(NO_REUSE):\n",
        "    if False:\n",
        (f"{ENDS}::test_nobody_has_attested_that_ids_do_not_come_again",),
    ),
    Guard(
        "a late row is hidden below what an earlier audit found complete",
        IDS,
        "None if _has_late(ranges, earlier.get(lane)) else certified.get(lane)",
        "certified.get(lane)",
        (f"{ENDS}::test_a_late_row_takes_away_what_was_found_complete_before",),
    ),
    Guard(
        "an inbox of several consumers is read as one",
        RECORD,
        "        if len(found) > 1:\n",
        "        if False:\n",
        (f"{ENDS}::test_masstransit_counts_what_one_consumer_consumed",),
    ),
    Guard(
        "an inbox whose key has a consumer is read as one",
        RECORD,
        "            self._shared_refuse(connection, table, ids, place)\n",
        "",
        (f"{ENDS}::test_masstransit_counts_what_one_consumer_consumed",),
    ),
    Guard(
        "complete by identity is called exactly once",
        "recovery_api/domain/verdicts.py",
        "    if evidence.identity:\n        return Status.COMPLETE_BY_IDENTITY\n",
        "",
        ("tests/unit/test_verdicts.py::test_a_record_of_ids_is_complete_by_identity_and_never_exactly_once",),
    ),
    Guard(
        "a plan for marks is not refused",
        "recovery_api/domain/conditions.py",
        "    if not capability.mark_because:\n        return []\n",
        "    return []\n",
        ("tests/unit/test_conditions.py::test_a_row_that_is_only_a_mark_blocks_a_plan_before_anything_else",),
    ),
)
