"""A day of a pipeline whose library deletes each row once it was delivered, audited by its schedule every half
hour. Time passes by moving what the control database remembers; nothing waits.

Each half hour one event is committed and delivered, and its row stays until the next audit has seen both; every fourth
time another comes and goes between two audits. Two rows get stuck; in the evening two are delivered altered.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest
from psycopg import sql

from recovery_api.models import Audit, Intent, IntentState, Pipeline
from recovery_api.presets import Answer, Mark, Preset, preset_get, preset_names
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.fleet import pipeline_status
from tests.integration.presets.library_table import RECORD, Shop, insert, kept_values, place
from tests.integration.recovery.test_schedules import passes
from workers.presence import sweep
from workers.runners import intent_run

DELETING = [name for name in preset_names("source") if preset_get(name).delivered.mark is Mark.DELETES]
DELETING = [name for name in DELETING if preset_get(name).answer is not Answer.REFUSED]

PERIOD = timedelta(minutes=30)
OPTIONS = {
    "audit_every_seconds": 1800,
    "stale_after_seconds": 3600,
    "in_flight_seconds": 600,
    "audit_jitter_percent": 0,
}
TURNS = 48
STUCK = {10: "a", 27: "b"}
"""In which turns a row is committed that the relay passes over. It is delivered four turns later."""
EVENING = 40


class Day:
    """The library's table, its relay, and an ordinary table that also keeps who admitted each row."""

    def __init__(self, shop: Shop, preset: Preset) -> None:
        self.shop, self.preset, self.accepted = shop, preset, 0
        shop.make(preset)
        if preset.added:
            shop.run.execute(
                sql.SQL("ALTER TABLE {} ADD COLUMN {} bigint GENERATED ALWAYS AS IDENTITY UNIQUE").format(
                    place(preset), sql.Identifier(preset.added)
                )
            )
        shop.accept(preset, [])
        shop.run.execute(
            sql.SQL("ALTER TABLE public.{} ADD admitted_in xid8 NOT NULL DEFAULT pg_current_xact_id()").format(
                sql.Identifier(RECORD)
            )
        )
        record = {"admitted_in": "admitted_in"}
        self.pipeline: Pipeline = shop.pipeline(preset, record, grace_seconds="0")
        self.pipeline.options = OPTIONS
        self.pipeline.save()

    def commit(self, name: str) -> None:
        columns = [self.preset.options["event_id"]]
        with self.shop.run.transaction():
            insert(self.shop.run, self.preset, 1, more=dict.fromkeys(columns, _id(name)))

    def deliver(self, name: str, *, is_altered: bool = False) -> None:
        """What the sink accepts of the row, which is still there afterwards."""
        columns = [(name_, value) for name_, value in kept_values(self.preset)]
        values = [
            sql.SQL("{} || {}").format(value, value) if is_altered and column == "content" else value
            for column, value in columns
        ]
        query = sql.SQL("INSERT INTO public.{} SELECT {} FROM {} WHERE {}").format(
            sql.Identifier(RECORD), sql.SQL(", ").join(values), place(self.preset), self._which(name)
        )
        assert self.shop.run.execute(query).rowcount == 1, name
        self.accepted += 1

    def delete(self, name: str) -> None:
        """What the library does once it has delivered."""
        query = sql.SQL("DELETE FROM {} WHERE {}").format(place(self.preset), self._which(name))
        assert self.shop.run.execute(query).rowcount == 1, name

    def _which(self, name: str) -> sql.Composable:
        column = sql.Identifier(self.preset.options["event_id"])
        return sql.SQL("{} = {}::uuid").format(column, sql.Literal(_id(name)))

    def period_passes(self) -> Audit | None:
        """A worker's sweep a period later, and what it asked for; the audit that this made."""
        before = Audit.objects.count()
        passes(PERIOD)
        sweep(now_get())
        for intent in Intent.objects.filter(state=IntentState.QUEUED):
            intent_run(str(intent.id), "worker")
            intent.refresh_from_db()
            assert intent.state == IntentState.DONE, intent.error
        if Audit.objects.count() == before:
            return None
        assert Audit.objects.count() == before + 1
        return Audit.objects.order_by("-finished_at")[0]


def _id(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))


def unknown_of(audit: Audit) -> int:
    return int(audit.lanes["0"]["counts"]["justification_unknown"])


@pytest.mark.parametrize("name", DELETING)
def test_a_day_of_a_relay_that_deletes_has_no_false_alarm_and_no_false_clean(shop: Shop, name: str) -> None:
    day = Day(shop, preset_get(name))
    sweep(now_get())
    assert day.period_passes() is None, "the first one only pins a frontier"
    quick: list[str] = []
    for turn in range(TURNS):
        before, now = f"e{turn - 1}", f"e{turn}"
        day.commit(now)  # still on its way when the audit looks
        if turn:
            day.deliver(before)
        if turn > 1:
            day.delete(f"e{turn - 2}")
        if turn % 4 == 3:
            quick.append(f"q{turn}")
            day.commit(quick[-1])
            day.deliver(quick[-1])
            day.delete(quick[-1])
        _stuck_rows(day, turn)
        _alterations(day, turn)
        audit = day.period_passes()
        assert audit is not None, turn
        _judged_rightly(day, audit, turn, quick)


def _stuck_rows(day: Day, turn: int) -> None:
    for since, name in STUCK.items():
        if turn == since:
            day.commit(name)
        if turn == since + 4:
            day.deliver(name)
            day.delete(name)


def _alterations(day: Day, turn: int) -> None:
    """One row that an audit saw owed is delivered altered and deleted; another is accepted altered and still there."""
    if turn == EVENING:
        day.commit("seen")
    if turn == EVENING + 2:
        day.deliver("seen", is_altered=True)
        day.delete("seen")
    if turn == EVENING + 3:
        day.commit("there")
        day.deliver("there", is_altered=True)


def _judged_rightly(day: Day, audit: Audit, turn: int, quick: Iterable[str]) -> None:
    found: Any = (audit.status, audit.exit_code)
    is_stuck = any(since < turn < since + 4 for since in (*STUCK, EVENING)) and turn < EVENING + 2
    if turn < EVENING + 2:
        assert found == (("owed", 1) if is_stuck else ("nothing_owed_of_kept", 4)), (turn, audit.says)
        assert (audit.lost_count, audit.premature_count) == (int(is_stuck), 0), (turn, audit.says)
    else:
        altered = 1 if turn < EVENING + 3 else 2
        assert (audit.status, audit.premature_count) == ("hazard", altered), (turn, audit.says)
    assert audit.duplicate_count == 0
    suspected = sum(int(lane["above_frontier_owed"]) for lane in audit.lanes.values())
    assert suspected == 1 + (turn in (*STUCK, EVENING)), (turn, audit.says)
    assert audit.accepted_count == day.accepted
    assert unknown_of(audit) == len(list(quick)), (turn, audit.says)
    if found[0] == "nothing_owed_of_kept" and quick:
        shown = audit.accepted_count - unknown_of(audit)
        share = f"Of {audit.accepted_count:,} acceptances {shown:,} ({100 * shown // audit.accepted_count} %) are shown"
        assert share in audit.says
    assert pipeline_status(day.pipeline, now_get()).status == audit.status
