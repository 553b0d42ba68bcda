"""docs/errors.md, made from the codes: `python -m recovery_api.errors_page > docs/errors.md` writes it anew (`make errors`).

The law: a code is listed because it exists, with what to do about it; one that nobody says anything of fails a test.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from recovery_api.domain.errors import FencepostError
from recovery_api.exceptions import PROBLEMS

DO: Mapping[str, str] = {
    "malformed": "Send one JSON object, in UTF-8, each member once.",
    "bad_request": "See `field` and `remedy`: a value of another type, or one that is not among its words.",
    "unknown_field": "See `known`. Nothing is ignored, so that a mistyped option is no other option.",
    "unknown_parameter": "See `known`.",
    "not_authenticated": "Sign in, or send `Authorization: Bearer TOKEN` with a token that stands.",
    "not_permitted": "Ask somebody with one of `roles`. The refusal stands in the timeline.",
    "csrf_failed": "Send the cookie's value as `X-CSRFToken`, or use a token instead of the session.",
    "no_such_resource": "See `remedy` for the nearest address; `GET /api/v1/` lists them.",
    "method_not_allowed": "See the `Allow` header.",
    "not_acceptable": "Accept `application/json`.",
    "idempotency_key_reused": "Use a new key for a new request.",
    "in_flight": "Wait for the first one: send the same request with the same key again after `Retry-After`.",
    "outdated": "Read it again, look whether your change still fits, send it with the new `ETag`.",
    "too_large": "See `limit_bytes`; send less, or in parts.",
    "unsupported_media_type": "Send `Content-Type: application/json`.",
    "throttled": "Wait as long as `Retry-After` says; one waiting look (`?wait=30`) costs one request.",
    "internal": "A defect. Nothing is known of the request's effect: look before you send it again, and report the traceback of the log.",
    "bad_input": "See `field` and `remedy`.",
    "unknown_option": "See `field` and the options listed; `GET /api/v1/kinds` says what each kind takes.",
    "bad_coordinate": "Write it as the source spells its coordinates, which the error shows.",
    "bad_file": "See which line or column is named, and mend it there, or leave the file out.",
    "uncanonical_content": "Give the event's digest instead of its content, or mend the JSON that is named.",
    "unsuitable": "What is named exists and cannot serve: see `remedy` for what to change at the end.",
    "frontier_refused": "Ask for a frontier at or below the safe one, and above what the source still holds.",
    "access_denied": "A right is missing at an end: `remedy` names the grant. The credential is not Fencepost's to change.",
    "not_found": "See `remedy` for the nearest name.",
    "engine_lacks": "See what all executors lack: `manage.py check_engine`. Install it there, or name another engine.",
    "evidence_gone": "A part is gone from the store or was altered. Audit or plan again; it is never guessed at.",
    "cut_short": "Raise the named limit of that server for this login, or let it read less.",
    "refused": "The protocol says no, and says why: nothing was written. Most often: plan again, or wait for what runs.",
    "frozen": "People stopped all sending. Ask who froze it; an approver lifts it: `manage.py unfreeze`.",
    "sink_restored": "Settle the sink first (`manage.py sinks settle NAME`): what it forgot would be sent twice otherwise.",
    "transient": "Send it again after `Retry-After`.",
    "unreachable": "See that the named server is up and reachable from here, then try again.",
    "no_answer": "What became of it is not known. Nothing is sent again before the sink was asked.",
    "out_of_room": "Make room at the named server.",
    "sink_busy": "Somebody holds a lock at the sink; the error names whom. End that session, or try again.",
    "snapshot_lost": "It is read again by itself.",
    "engine_unavailable": "See that Spark, or the broker, is up (`manage.py doctor`). The work stays queued.",
    "not_flushed": "Look at the server's disk and its WAL writer; it is tried again by itself.",
    "evidence_unwritable": "Make room in the evidence folder, or mount it again; it is tried again by itself.",
    "control_database_away": "See that the control database is up; it is tried again by itself.",
    "ledger_moved": "Nothing: it is read once more, on top of what another reading recorded.",
    "stood_still": "Nothing at once: another worker takes it and asks the sink first. Twice in a row: look at the network to the named end.",
    "terminal": "See the text: somebody must act before it can succeed.",
    "error": "See the text, and report it: it has no code of its own.",
}
HEAD = """# Errors

Every code that the REST API answers with, that an intent's `error` may hold, or that a command's `--json` prints. A code
keeps its meaning and its status for the life of `/api/v1`; read it and the data, never the text. The page is made by
`make errors`. How a problem looks is in [api.md](api.md).

*Tried again*: the work does so by itself. A request of yours may be sent again as it was.

| code | status | what it is | data | tried again | what to do |
|---|---|---|---|---|---|
"""


def page() -> str:
    """The page, rows in the order of their statuses; codes that only work has come last."""
    of_work = [code for code in FencepostError._by_code if code not in PROBLEMS]
    ordered = [*sorted(PROBLEMS, key=lambda code: (PROBLEMS[code].status, code)), *sorted(of_work)]
    return HEAD + "".join(f"{_row(code)}\n" for code in ordered)


def _row(code: str) -> str:
    kind, problem = FencepostError._by_code.get(code), PROBLEMS.get(code)
    status = str(problem.status) if problem else "in intents"
    title = problem.title if problem else (kind.__name__ if kind else "")
    data = " ".join(f"`{name}`" for name in kind.fields) if kind else ""
    again = "yes" if (kind and kind.is_transient and code != "frozen") or status in ("429", "503") else "no"
    return f"| `{code}` | {status} | {title} | {data} | {again} | {DO[code]} |"


if __name__ == "__main__":
    sys.stdout.write(page())
