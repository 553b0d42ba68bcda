from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.alert_rows import alert_as_row, line_as_row, mute_as_row
from recovery_api.domain.alerts.causes import Cause, Severity
from recovery_api.domain.alerts.quiet import Mutes
from recovery_api.domain.moments import moment_read
from recovery_api.domain.words import words
from recovery_api.management.base import DONE, OWED, UNKNOWN, FencepostCommand, Shown, subcommand_add
from recovery_api.selectors.alerts import (
    alert_get,
    alert_lines,
    alert_list,
    evaluated_at,
    mute_get,
    mutes_standing,
    pager_says,
)
from recovery_api.selectors.clock import now_get
from recovery_api.services.alert_quiet import alert_acknowledge, alert_give_back, mute_add, mute_end

SHOWN = 200


class Command(FencepostCommand):
    help = "Alerts: list, show, acknowledge until a moment, mute until a moment. list exits 1 where one is open, 3 without a pager."

    def add_arguments(self, parser: CommandParser) -> None:
        subparsers = parser.add_subparsers(dest="what", required=True)
        listed = subcommand_add(subparsers, "list", "those that are open, worst first")
        listed.add_argument("--state", choices=["open", "resolved", "all"], default="open")
        listed.add_argument("--cause", choices=words(Cause), default="")
        listed.add_argument("--severity", choices=words(Severity), default="")
        listed.add_argument("--pipeline", default="")
        show = subcommand_add(subparsers, "show", "one, with its history")
        show.add_argument("alert")
        ack = subcommand_add(
            subparsers, "ack", "take one over: nobody is told again until a moment, unless it becomes worse"
        )
        ack.add_argument("alert")
        _why(ack)
        back = subcommand_add(subparsers, "give-back", "end an acknowledgement")
        back.add_argument("alert")
        mute = subcommand_add(subparsers, "mute", "tell nobody of what fits, until a moment")
        mute.add_argument("by", choices=words(Mutes))
        mute.add_argument("value", help="a name; of a label name=value")
        mute.add_argument("--cause", choices=words(Cause), default="")
        _why(mute)
        subcommand_add(subparsers, "mutes", "what is muted now")
        end = subcommand_add(subparsers, "unmute", "end a mute")
        end.add_argument("mute", help="its id, as listed")

    def answer(self, now: datetime, **options: Any) -> Shown:
        now = now_get()
        answered: Shown = getattr(self, f"_{options['what'].replace('-', '_')}")(now, options)
        return answered

    def _list(self, now: datetime, options: dict[str, Any]) -> Shown:
        given = {name: options[name] for name in ("state", "cause", "severity", "pipeline")}
        rows = [alert_as_row(one, now) for one in alert_list(**given)[:SHOWN]]
        absent = pager_says(now, evaluated_at())
        lines = [*([absent] if absent else []), *(map(_line, rows) if rows else ["No alert is like this."])]
        is_open = any(row["state"] != "resolved" for row in rows)
        return Shown({"alerts": rows, "pager_says": absent}, lines, UNKNOWN if absent else OWED if is_open else DONE)

    def _show(self, now: datetime, options: dict[str, Any]) -> Shown:
        alert = alert_get(options["alert"])
        cause = Cause(alert.cause)
        row = {**alert_as_row(alert, now), "means": cause.means, "resolves": cause.resolves}
        row["history"] = [line_as_row(line) for line in alert_lines(alert)]
        lines = [_line(row), cause.means, f"It resolves by: {cause.resolves}"]
        if row["observed_says"]:
            lines.append(row["observed_says"])
        lines += [f"  {line['at'][:19]}  {line['change']} ({line['actor']})  {line['says']}" for line in row["history"]]
        return Shown(row, lines)

    def _ack(self, now: datetime, options: dict[str, Any]) -> Shown:
        until = moment_read(options["until"], "until")
        alert = alert_get(options["alert"])
        alert_acknowledge(alert, note=options["note"], until=until, actor=options["actor"], now=now)
        row = alert_as_row(alert_get(alert.pk), now)
        return Shown(row, [_line(row)])

    def _give_back(self, now: datetime, options: dict[str, Any]) -> Shown:
        alert = alert_give_back(alert_get(options["alert"]), actor=options["actor"], now=now)
        row = alert_as_row(alert_get(alert.pk), now)
        return Shown(row, [_line(row)])

    def _mute(self, now: datetime, options: dict[str, Any]) -> Shown:
        mute = mute_add(
            options["by"],
            options["value"],
            cause=options["cause"],
            note=options["note"],
            until=moment_read(options["until"], "until"),
            actor=options["actor"],
            now=now,
        )
        row = mute_as_row(mute)
        return Shown(row, [_mute_line(row)])

    def _mutes(self, now: datetime, options: dict[str, Any]) -> Shown:
        rows = [mute_as_row(one) for one in mutes_standing(now)]
        return Shown({"mutes": rows}, [_mute_line(row) for row in rows] or ["Nothing is muted."])

    def _unmute(self, now: datetime, options: dict[str, Any]) -> Shown:
        row = mute_as_row(mute_end(mute_get(options["mute"]), actor=options["actor"], now=now))
        return Shown(row, [f"Ended: {_mute_line(row)}"])


def _why(parser: CommandParser) -> None:
    parser.add_argument("--note", required=True, help="why: others read it")
    parser.add_argument("--until", help="its end, which it must have: 2026-11-28T22:30:00Z")


def _line(row: dict[str, Any]) -> str:
    quiet = {"acknowledged": row["acknowledged_until"], "muted": row["muted_until"]}.get(row["state"])
    until = f" until {quiet[:16]}" if quiet else ""
    return f"{row['alert']}  {row['severity']}  {row['label']}: {row['about']}  {row['state']}{until}  since {row['since'][:16]}  {row['says']}"


def _mute_line(row: dict[str, Any]) -> str:
    return f"{row['mute']}  {row['says']}  until {row['until'][:16]}  {row['note']} ({row['created_by']})"
