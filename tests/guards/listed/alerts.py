"""What keeps a page from being lost, doubled, late in silence, or sent where it must not go."""

from __future__ import annotations

from tests.guards.guard import Guard

DOMAIN = "tests/unit/alerts/test_evaluation.py"
EVALUATING = "tests/integration/alerts/test_evaluating.py"
DELIVERING = "tests/integration/alerts/test_delivering.py"
OUTBOX = "tests/unit/alerts/test_outbox.py"
TIMELINES = (
    "tests/integration/alerts/test_faces.py::"
    "test_timelines_and_a_post_mortem_tell_of_alerts_among_the_events_in_the_order_they_were_written"
)

GUARDS = (
    Guard(
        "a look that is no newer resolves an alert",
        "recovery_api/domain/alerts/evaluation.py",
        "    if seen.at <= held.seen_at:\n        return Step(held)\n",
        "",
        (f"{DOMAIN}::test_looks_that_are_no_newer_resolve_nothing",),
    ),
    Guard(
        "a worse state stays silent under an acknowledgement",
        "recovery_api/services/alerts.py",
        "        elif change is Change.WORSENED:\n            self.worsened.add(str(alert.pk))\n",
        "        elif change is Change.WORSENED:\n",
        (f"{EVALUATING}::test_an_event_alone_changes_nothing_and_a_worse_state_breaks_through_an_acknowledgement",),
    ),
    Guard(
        "a trigger is tried again after its resolve",
        "recovery_api/services/deliveries.py",
        "        replaced.update(state=DeliveryState.SUPERSEDED, superseded_by=row.pk, due_at=None)\n",
        "",
        (f"{DELIVERING}::test_a_trigger_is_never_tried_again_after_its_resolve_and_the_row_stays",),
    ),
    Guard(
        "a pager that lost a delivery writes down its answer",
        "recovery_api/services/deliveries.py",
        "                taken_by=delivery.taken_by,\n                attempts=delivery.attempts,\n",
        "",
        (f"{DELIVERING}::test_an_answer_that_comes_after_another_pager_took_over_changes_nothing",),
    ),
    Guard(
        "a destination that fails pages nobody else",
        "recovery_api/services/deliveries.py",
        "            spare_page(row, answer.problem, now)\n    return True\n",
        "            pass\n    return True\n",
        (f"{DELIVERING}::test_what_fails_is_tried_again_with_the_same_id_and_pages_the_next_route",),
    ),
    Guard(
        "a private address is reached",
        "workers/alerts/sending.py",
        "        if refusal := address_refusal(address, allowed):\n",
        "        if (refusal := address_refusal(address, allowed)) and False:\n",
        (f"{DELIVERING}::test_a_private_address_is_refused_at_the_connection_unless_it_is_named",),
    ),
    Guard(
        "an answer that drips holds a pager's thread",
        "workers/alerts/sending.py",
        "        watch.start()\n",
        "",
        (f"{DELIVERING}::test_an_answer_that_drips_does_not_stretch_the_deadline",),
    ),
    Guard(
        "the heartbeat leaves while a page reaches nobody",
        "workers/alerts/pager.py",
        "    if stuck := deliveries_overdue(now, PAGE_BOUND):\n",
        "    if (stuck := deliveries_overdue(now, PAGE_BOUND)) < 0:\n",
        (f"{DELIVERING}::test_the_heartbeat_leaves_only_after_an_evaluation_and_while_no_page_is_stuck",),
    ),
    Guard(
        "a monitor that hangs keeps pages from leaving",
        "workers/alerts/pager.py",
        "            self._beating = self._beats.submit(_called, self.deliverer.sender)\n",
        "            self._beating = self._beats.submit(_called, self.deliverer.sender)\n            self._beating.result()\n",
        (f"{DELIVERING}::test_a_monitor_that_hangs_keeps_no_page_from_leaving",),
    ),
    Guard(
        "what waits for destinations that hang keeps the others from being taken",
        "workers/alerts/delivering.py",
        "        if len(self._running) >= AT_ONCE or any(running[one.destination_id] < AT_ONCE_EACH for one in self._taken):\n",
        "        if len(self._running) >= AT_ONCE or self._taken:\n",
        (f"{DELIVERING}::test_destinations_that_hang_with_much_that_waits_are_in_nobodys_way",),
    ),
    Guard(
        "a slot that was not read ends the alert of a full one",
        "recovery_api/domain/alerts/source_growth.py",
        "        is_told = is_told and says is not None\n",
        "",
        ("tests/unit/alerts/test_source_growth.py::test_what_was_not_read_shows_nothing_and_keeps_the_alert_as_it_is",),
    ),
    Guard(
        "a scrape shows zero where a check could not tell",
        "recovery_api/selectors/metrics.py",
        "            is_known = status != Status.UNKNOWN",
        "            is_known = bool(status)",
        (
            "tests/integration/pages/test_metrics.py::"
            "test_a_scrape_says_what_pages_say_and_nothing_of_what_is_not_known",
        ),
    ),
    Guard(
        "a slot that is lost has room",
        "recovery_api/domain/alerts/source_growth.py",
        '    if slot.lost_because or slot.wal_status == "lost":\n',
        '    if slot.lost_because and slot.wal_status == "":\n',
        ("tests/unit/alerts/test_source_growth.py",),
    ),
    Guard(
        "a mute may have no end",
        "recovery_api/domain/alerts/quiet.py",
        "    if until is None:\n        raise BadInput",
        "    if until is None:\n        return now + LONGEST\n        raise BadInput",
        (f"{OUTBOX}::test_a_mute_has_an_end_and_a_label_no_line_break",),
    ),
    Guard(
        "a recovery that waits because sending is frozen pages as stuck",
        "recovery_api/selectors/alerts_seen.py",
        '(is_frozen or row["run_wanted"] == Wanted.PAUSE)',
        '(row["run_wanted"] == Wanted.PAUSE)',
        (f"{EVALUATING}::test_a_recovery_that_waits_because_its_sending_is_frozen_is_not_stuck",),
    ),
    Guard(
        "a destination that somebody changed meanwhile is overwritten",
        "recovery_api/services/destinations.py",
        "        version_check(locked, read)\n",
        "",
        (
            "tests/integration/api/test_for_tools.py::"
            "test_a_change_of_a_destination_that_somebody_changed_meanwhile_is_refused",
        ),
    ),
    Guard(
        "what happened to an alert stands before every event of its timeline",
        "recovery_api/services/alerts.py",
        "            line.after_event = newest\n",
        "            pass\n",
        (TIMELINES,),
    ),
    Guard(
        "a line of an alert is lost between two pages of a timeline",
        "recovery_api/selectors/timelines.py",
        "Q(after_event__lt=before.event) | Q(after_event=before.event, id__lt=before.line)",
        "Q(after_event__lt=before.event)",
        (TIMELINES,),
    ),
)
