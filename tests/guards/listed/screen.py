"""What the pages show to whom, and what they may say of what nobody saw."""

from __future__ import annotations

from tests.guards.guard import Guard

PAGES = "tests/integration/pages"
MASKED = f"{PAGES}/test_finding_pages.py::test_contents_that_somebody_else_asked_for_are_masked_until_that_one_looks_is_logged"
TAKEN = f"{PAGES}/test_finding_pages.py::test_what_the_sink_holds_is_taken_by_rest_and_that_is_logged"
READS = "recovery_api/services/event_reads.py"
LOOKED = '    says = f"{subject(actor)} looked at what {subject(content.intent.created_by)} had read of the event at"\n'

GUARDS = (
    Guard(
        "contents that somebody else asked for are shown unasked",
        "recovery_api/selectors/findings.py",
        "    return asked.filter(data__intent=str(intent.pk)).exists()\n",
        "    return True\n",
        (MASKED,),
    ),
    Guard(
        "that somebody looks at contents is not written down",
        READS,
        f"{LOOKED}    _log_event(content.intent, says, actor, now)\n",
        "",
        (MASKED,),
    ),
    Guard(
        "what the sink holds is taken and nobody knows by whom",
        READS,
        '    _log_event(content.intent, f"{subject(actor)} took what the sink holds of the event at", actor, now)\n',
        "",
        (TAKEN,),
    ),
    Guard(
        "whoever sees pages reads contents",
        "recovery_api/domain/access.py",
        '        "take a content",\n        Permission.READ_CONTENT,\n',
        '        "take a content",\n        Permission.SEE,\n',
        (MASKED,),
    ),
    Guard(
        "what the sink holds stays with the work that read it",
        "workers/recovery/reading.py",
        '            "rows": [{name: row[name] for name in ("of", "bytes", "is_cut")} for row in held],\n',
        '            "rows": held,\n',
        (
            "tests/integration/recovery/test_both_sides.py::"
            "test_both_contents_of_an_altered_event_are_read_cut_and_never_logged",
        ),
    ),
    Guard(
        "a large content leaves the sink whole",
        "workers/connectors/postgresql/content.py",
        '        "start": sql.SQL("left({}, {})").format(raw, sql.Literal(CONTENT_CHARACTERS)),\n',
        '        "start": raw,\n',
        (
            "tests/integration/recovery/test_both_sides.py::"
            "test_both_contents_of_an_altered_event_are_read_cut_and_never_logged",
        ),
    ),
    Guard(
        "a key that was looked up for people decides what a scope owes",
        "workers/recovery/ledger.py",
        '                    key=row["key"] if is_scoped else None,\n',
        '                    key=row["key"],\n',
        (
            "tests/integration/recovery/test_ledger.py::"
            "test_another_scope_keeps_what_was_open_and_takes_nothing_as_seen",
        ),
    ),
    Guard(
        "a filter is deleted by another person than whose it is",
        "recovery_api/services/looking.py",
        "    count, _ = saved_filters(person).filter(pk=filter_id).delete()\n",
        "    count, _ = SavedFilter.objects.filter(pk=filter_id).delete()\n",
        (f"{PAGES}/test_looking.py::test_a_filter_is_saved_opened_replaced_and_deleted_by_its_person_alone",),
    ),
    Guard(
        "a reload makes what changed look seen",
        "recovery_api/services/looking.py",
        "    before_at = CASE WHEN excluded.seen_at - held.seen_at > %(visit)s THEN held.seen_at ELSE held.before_at END,\n",
        "    before_at = held.seen_at,\n",
        (f"{PAGES}/test_looking.py::test_a_visit_goes_on_while_somebody_looks",),
    ),
    Guard(
        "what nobody looked at is shown as there",
        "recovery_api/selectors/health.py",
        '        return PartSeen(name, None, f"{seen}: nobody looks, because no pager runs.", START_A_PAGER)\n',
        '        return PartSeen(name, True, f"{seen}: nobody looks, because no pager runs.", START_A_PAGER)\n',
        (
            "tests/integration/control/test_health.py::"
            "test_engine_and_broker_are_there_while_the_pager_reaches_them_and_unwatched_without_it",
        ),
    ),
)
