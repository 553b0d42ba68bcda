"""The same rows for a person: short, plain lines that end with what to do next."""

from __future__ import annotations

from typing import Any

from recovery_api.domain.actors import by
from recovery_api.domain.commands import command_line
from recovery_api.domain.frontiers import SINGLE_LANE
from recovery_api.domain.headroom.evidence import EXPIRED
from recovery_api.domain.lane_order import lanes_by_trouble
from recovery_api.domain.looks import look_of
from recovery_api.domain.omissions import Word
from recovery_api.domain.outcomes import OUTCOMES
from recovery_api.domain.relay_cursors import cursor_says, window_says
from recovery_api.rows import Row

SAMPLES = 10
LANES = 20


def end_lines(word: str, row: Row) -> list[str]:
    lines = [f"{word} {row['name']}, kind {row['kind']}"]
    by = f" (preset {row['options'].get('preset')})"
    for name, value in sorted(row["options"].items()):
        lines.append(f"  {name} = {_value(value)}{by if name in row.get('filled', ()) else ''}")
    lines += (
        report_lines(row["report"])
        if row["report"]
        else [f"  Never tested: {command_line(f'{word}s', 'test', row['name'])}"]
    )
    if said := row.get("said"):
        lines.append(f"  It last said: generation counter {said['counter']}, fence {said['fence']}, at {said['at']}.")
    if row.get("restored_at"):
        lines.append(f"  {row['restored_says']}")
    if "drill_passed_at" in row:
        every = f", every {row['drill_every_hours']} h" if row["drill_every_hours"] else ""
        passed = f"last passed at {row['drill_passed_at']}" if row["drill_passed_at"] else "never passed"
        lines.append(f"  Drills{every}: {passed}. {command_line('drill', row['name'], '--wait')}")
    return lines


def report_lines(report: Row) -> list[str]:
    """A connection test, as found."""
    hidden = ("code", "error", "columns")
    facts = {name: value for name, value in sorted(report["facts"].items()) if name not in hidden}
    lines = [f"  {name}: {_value(value)}" for name, value in facts.items() if value not in (None, "", [])]
    lines += [f"  Problem: {problem}" for problem in report["problems"]]
    lines += [f"  Weakness: {weakness}" for weakness in report["weaknesses"]]
    if sample := report.get("sample"):
        lines += [f"  Sample: {sample['says']}", *(f"    {_sample_line(row)}" for row in sample["rows"])]
    if capability := report.get("capability"):
        declared = capability.get("declared")
        weaker = f", though its kind is {declared}: the weaker counts" if declared != capability["archetype"] else ""
        lines.append(f"  Archetype: {capability['archetype']}{weaker if declared else ''}")
        lines += [f"  {capability['recovery']}"] if capability.get("recovery") else []
        lines += [f"    {ground}" for ground in capability.get("grounds", [])]
    lines += [line for point in report.get("points") or [] for line in _point_lines(point)]
    lines.append("  It can serve." if report["is_usable"] else "  It cannot serve as it is.")
    return lines


def _point_lines(point: Row) -> list[str]:
    """One point of a sink: what is declared, what was tested, and what counts of the two."""
    mark = " (less than declared)" if point["is_weaker"] else ""
    because = f" {point['because']}" if point["because"] else ""
    return [
        f"  {point['point']}: declared {point['declared']}, tested {point['tested']}{mark}; counts: {point['counts']}.{because}",
        f"    {point['how']}",
    ]


def _sample_line(row: Row) -> str:
    """One sample row: its columns in order; of a content how many bytes, and how it begins where that was asked for."""
    parts = []
    for name, value in row.items():
        if name == "content_bytes":
            parts.append("no content" if value is None else f"content of {value} bytes")
        elif value is not None:
            parts.append(f"{name.removesuffix('_start')} {value!a}" if name == "content_start" else f"{name} {value}")
    return ", ".join(parts)


def drill_lines(row: Row) -> list[str]:
    lines = [f"drill {row['drill']} of {row['sink']}: {row['state'].replace('_', ' ')}"]
    for result in row["results"]:
        lines.append(f"  {result['verdict'].replace('_', ' '):<14}  {result['title']}: {result['says']}")
        if result["verdict"] == "failed":
            lines += [
                f"    {'ok   ' if step['holds'] else 'WRONG'} {step['step']}: {step['said']}"
                + ("" if step["holds"] else f" (expected {step['expected']})")
                for step in result["steps"][-SAMPLES:]
            ]
        if result["yields"]:
            lines.append(f"    {result['yields']}")
        lines += [f"    {note}" for note in result["notes"]]
    return lines


def pipeline_lines(row: Row) -> list[str]:
    scope = "every key" if row["scope"] is None else f"{len(row['scope'])} keys"
    approver = "another person than the author" if row["requires_other_approver"] else "anyone, the author too"
    to = row["sink"] if row["delivery"] is None else f"{row['delivery']}, recorded in {row['sink']}"
    lines = [
        f"pipeline {row['name']}: {row['source']} -> {to}, {scope}",
        f"  A plan is approved by {approver}.",
    ]
    lines += [f"  {row['strategy_says']}"] if row["strategy_says"] else []
    return lines + [f"  {name} = {_value(value)}" for name, value in row["options"].items() if value is not None]


def status_lines(rows: list[Row]) -> list[str]:
    if not rows:
        return ["No pipeline is registered. Add one: manage.py pipelines add NAME --source S --sink K."]
    width = max(len(row["name"]) for row in rows)
    return [
        f"{row['name']:<{width}}  {_words(row):<12}"
        + (f"  at f = {row['frontier']}" if row["frontier"] else "")
        + f"  {row['says']}"
        for row in rows
    ]


def _words(row: Row) -> str:
    """The word of an audit, or of a pipeline, as it reads now."""
    return look_of(EXPIRED).says if row["is_expired"] else OUTCOMES[row["status"]].words


def schedule_lines(status: Row) -> list[str]:
    """How the pipeline stands with its schedule: what is suspected, what waits, when it is audited next."""
    schedule = status["schedule"]
    lines = [f"  {schedule['says']}"]
    if status["suspected"]:
        lines.append(f"  Newer and not accepted yet, perhaps on their way: {status['suspected']:,}.")
    return lines + ([f"  {schedule['waiting_says']}"] if schedule["waiting_says"] else [])


def schedules_lines(rows: list[Row]) -> list[str]:
    """One line a pipeline: how often, when last, when next, and whether that is overdue."""
    if not rows:
        return ["No pipeline is registered. Add one: manage.py pipelines add NAME --source S --sink K."]
    width = max(len(row["name"]) for row in rows)
    lines = []
    for row in rows:
        schedule = row["schedule"]
        last = schedule["last_read_at"]
        audited = f"last audited {last[:19]}Z" if last else "never audited"
        lines.append(f"{row['name']:<{width}}  {audited}  {schedule['says']}")
        if schedule["waiting_says"]:
            lines.append(f"{'':<{width}}  {schedule['waiting_says']}")
    return lines


def audit_lines(row: Row) -> list[str]:
    premature = "not judged" if row["premature"] is None else f"{row['premature']:,}"
    lines = [
        f"{row['pipeline']}: {_words(row)}, f = {row['frontier']}",
        f"  {row['says']}",
        f"  lost {row['lost']:,}, premature {premature}, duplicates {row['duplicates']:,}, "
        f"acknowledged {row['acknowledged']:,}; of {row['obligations']:,} events checked and {row['accepted']:,} accepted",
    ]
    for lane, found in lanes_by_trouble(row["lanes"])[:LANES]:
        if safe := found.get("safe_frontier"):
            at = f"safe frontier {safe['says']}" if safe["says"] else "nothing is safe yet"
            lines.append(f"  lane {lane}: {at}, by {safe['ground']}. {safe['because']}")
            lines += [f"    waits for {name}" for name in safe["waits_for"]]
        if cursor := found.get("cursor"):
            lines.append(
                f"  lane {lane}: relay's cursor {cursor['says'] or 'not known'}. {cursor_says(cursor, found['status'])}"
            )
            lines += [f"    {says}"] if (says := window_says(cursor, found["status"])) else []
    if (others := len(row["lanes"]) - LANES) > 0:
        lines.append(f"  and {others:,} more lanes, none of them worse: --json tells all")
    lines += [f"  Given: {given}" for given in row["given"]]
    lines += [f"  Weakness: {weakness}" for weakness in row["weaknesses"]]
    lines += [f"  {_finding(finding)}" for finding in row["findings"][:SAMPLES]]
    if (more := row["evidence"]["rows"] - len(row["findings"][:SAMPLES])) > 0:
        lines.append(f"  and {more:,} more in {row['evidence']['uri']}")
    lines += [f"  {row['evidence_says']}"] if row["evidence_says"] else []
    if row["is_void"]:
        lines.append(f"  Void: {row['void_says']}")
    if row["status"] in ("owed", "hazard"):
        lines.append(_next("plan", row["pipeline"], "--wait"))
    elif row["status"] == "unknown":
        lines.append("Next: put right what is named above, then audit again.")
    return lines


def plan_lines(row: Row) -> list[str]:
    lines = [f"plan {row['plan']} of {row['pipeline']}: {row['state'].replace('_', ' ')}"]
    if row["frontier"]:
        lines.append(f"  frontier {row['frontier']}")
    if row["says"]:
        lines.append(f"  {row['says']}")
    for one in row["classes"]:
        if str(one["count"]) != "0":
            remedy = f" {one['remedy']}" if one["remedy"] else ""
            lines.append(f"  {one['evidence_class']}: {int(one['count']):,}. {one['says']}{remedy}")
    for condition in row["conditions"]:
        mark = {True: "holds", False: "FAILS", None: "unknown"}[condition["holds"]]
        remedy = f" {condition['remedy']}" if condition["holds"] is not True and condition.get("remedy") else ""
        lines.append(f"  {condition['name']} {mark}: {condition['says']}{remedy}")
    if row["stranded"]:
        lines.append(f"  Newer events that may be turned away: {row['stranded']:,}; the next relay run delivers them.")
    lines += [f"  {_finding(sample)}" for sample in row["samples"][:SAMPLES]]
    if row["state"] == "ready":
        lines.append(_next("approve", row["plan"], "--digest", row["digest"]))
    elif row["state"] == "approved":
        attest = [word for one in row["attestations"] for word in ("--attest", one["write"])]
        lines += [f"  To attest: {one['asks']}" for one in row["attestations"]]
        words = ("redrive", row["plan"], "--reason", "…", "--confirm", row["pipeline"], *attest, "--wait")
        lines += [f"  approved {by(row['approved_by'])} at {row['approved_at']}", _next(*words)]
    elif row["state"] in ("refused", "lapsed"):
        lines.append(_next("plan", row["pipeline"], "--wait"))
    elif row["state"] == "nothing_owed":
        lines.append(f"There is nothing to send. What is known: manage.py pipelines show {row['pipeline']}")
    return lines


def recovery_words(row: Row) -> str:
    """How it ended, as its certificate reads now, or the step that it is at."""
    if row["certificate_is_expired"]:
        return look_of(EXPIRED).says
    return OUTCOMES[row["outcome"]].words if row["outcome"] else row["state"].replace("_", " ")


def recovery_lines(row: Row) -> list[str]:
    ended = f"ended {OUTCOMES[row['outcome']].words}" if row["outcome"] else row["state"].replace("_", " ")
    lines = [f"recovery {row['recovery']} of {row['pipeline']}: {ended}"]
    if row["says"]:
        lines.append(f"  {row['says']}")
    if row["steering_says"]:
        lines.append(f"  {row['steering_says']}")
    lines.append(f"  frontier {row['frontier']}, generation {row['generation'] or 'none yet'}")
    if row["parts"] > 1:
        lines.append(f"  part {row['part']} of {row['parts']}")
    lines.append(
        f"  delivered {row['landed']:,}, already present {row['absorbed']:,}, altered at the sink {row['altered']:,}"
    )
    if row["problem"] and not row["outcome"]:
        lines.append(f"  In trouble: {row['problem'].get('text')}")
    if row["certificate_is_expired"]:
        lines.append(
            f"  Its certificate reads {look_of(EXPIRED).says}: an end may have forgotten what it rests on since"
            f" {row['certificate_evidence_until'][:19]}Z. Audit again."
        )
    elif row["certificate_evidence_until"]:
        lines.append(f"  The evidence of its certificate lasts until {row['certificate_evidence_until'][:19]}Z.")
    if row["certificate_is_void"]:
        lines.append(f"  Its certificate is void: {row['certificate_void_says']}")
    if row["outcome"] == "unknown" or (row["problem"] and not row["outcome"]):
        lines.append(_next("recovery", row["recovery"], "settle", "--wait"))
    elif row["outcome"] in ("fenced", "incomplete", "refused", "stopped"):
        lines.append(_next("plan", row["pipeline"], "--wait"))
    return lines


def event_lines(rows: list[Row]) -> list[str]:
    return [
        f"{row['at'][:19]}Z  {row['kind']:<22}  {row['actor']}"
        + (f"  g{row['generation']}" if row["generation"] else "")
        + f"  {row['says']}"
        for row in rows
    ] or ["Nothing has happened yet."]


def omission_lines(rows: list[Row]) -> list[str]:
    return [
        f"{row['coordinate'] if row['lane'] == SINGLE_LANE else row['lane'] + '=' + row['coordinate']}  "
        f"{row['acknowledged_by']}: {row['reason']}" + _omission_more(row)
        for row in rows
    ] or ["No omission is acknowledged."]


def purge_lines(row: Row) -> list[str]:
    """The answer first, then each pipeline's ground, then what may go and the transaction that a person runs."""
    lines = []
    for lane in row["lanes"]:
        at = lane["below"] if lane["lane"] == SINGLE_LANE else f"{lane['lane']}={lane['below']}"
        lines.append(f"May everything at or below {at} go? {lane['answer']}")
        for one in lane["pipelines"]:
            said = f"  {one['pipeline']}: {one['answer']}. " if one["pipeline"] else "  "
            lines.append(f"{said}{one['says']} {one['remedy']}".rstrip())
        lines += [lane["uncleared_says"]] if lane["uncleared_says"] else []
        lines.append(f"Highest coordinate that may go: {lane['highest'] or 'none'}")
        lines.append(lane["transaction_says"])
        if lane["transaction"]:
            lines += ["", *lane["transaction"].split("\n"), ""]
    return lines


def preview_lines(row: Row) -> list[str]:
    """What a preview would do, which lines of an export it left out, and how to confirm it."""
    lines = [row["says"]]
    for rejected in row["asked"].get("rejected_lines", []):
        lines.append(f"Line {rejected['line']} rejected: {rejected['says']}")
    if ignored := row["asked"].get("ignored_lines"):
        lines.append(f"Lines ignored: {', '.join(ignored)}.")
    if row["counts"] is None:
        lines.append(_next("intents", "list"))
    elif any(int(row["counts"].get(word, 0)) for word in (Word.OWED, Word.BY_CONTENT)):
        enough = [] if int(row["counts"].get(Word.OWED, 0)) else ["--with-content"]
        lines.append(_next("omissions", "confirm", row["pipeline"], row["preview"], *enough, "--reason", "WHY"))
    return lines


def _omission_more(row: Row) -> str:
    """Its reference, its end, and what became of it."""
    said = [f" ({row['reference']})"] if row["reference"] else []
    if row["withdrawn_at"]:
        return "".join([*said, " (withdrawn)"])
    said += [", named by key and content alone"] if row["is_by_content"] else []
    said += [f", until {row['until'][:16]}Z"] if row["until"] else []
    said += [f", accepted all the same (seen {row['accepted_seen_at'][:16]}Z)"] if row["accepted_seen_at"] else []
    return "".join(said)


def _next(*words: Any) -> str:
    """What to type next."""
    return f"Next: {command_line(*words)}"


def _finding(finding: Row) -> str:
    """One line: the word, where, why, and of the committed event its key, id and time, as far as they are known.

    >>> _finding({"finding": "lost", "coordinate": "7", "key": "o1", "event_id": "e7", "committed_at": "2026-03-01T03:00:00+00:00"})
    "lost 7  key 'o1'  event id 'e7'  committed at 2026-03-01T03:00:00Z"
    """
    where = finding.get("coordinate") or finding.get("position")
    lane = f" lane {finding['lane']}" if finding.get("lane") not in (None, SINGLE_LANE) else ""
    parts = (finding.get("finding") or finding.get("op"), f"{where}{lane}", finding.get("cause"))
    named = [
        f"{word} {finding[name]!r}"
        for word, name in (("key", "key"), ("event id", "event_id"))
        if finding.get(name) is not None
    ]
    named += [f"committed at {finding['committed_at'][:19]}Z"] if finding.get("committed_at") else []
    return "  ".join([" ".join(str(part) for part in parts if part), *named])


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_value(inner)}" for name, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_value(inner) for inner in value)
    return str(value)
