"""What can go wrong, as one tree.

    FencepostError
    ├── TransientError          the same call may succeed later
    │   ├── Unreachable             an endpoint does not answer
    │   │   └── NoAnswer                it fell silent in the middle: its last word is not known
    │   ├── OutOfRoom               a server has no disk, memory or connection left
    │   ├── SinkBusy                the sink waits for somebody; names whom
    │   ├── NotFlushed              what was read is not on the server's disk yet
    │   ├── SnapshotLost            the read must start again
    │   ├── EngineUnavailable       Spark or the broker does not answer
    │   ├── EvidenceUnwritable      the evidence folder is full, read-only or away
    │   ├── ControlDatabaseAway     the control database ended a statement or a connection
    │   ├── LedgerMoved             another audit's knowledge came in while this one read
    │   ├── Frozen                  people stopped all sending; it goes on once they lift that
    │   └── StoodStill              the work made no progress for longer than its step may
    └── TerminalError           someone must act
        ├── BadInput                what was given cannot be used
        │   ├── UnknownOption
        │   ├── BadCoordinate
        │   └── BadFile
        ├── AccessDenied            a credential is wrong or too weak
        ├── NotFound                a table, column, file or row is not there
        ├── Unsuitable              it is there, and cannot serve (type, replica, subscriber, foreign cluster)
        ├── EngineLacks             executors have not what the work needs
        ├── EvidenceGone            a part of evidence is away, or not what was written
        ├── CutShort                a limit that the server's side has set ended a step
        ├── FrontierRefused         above the safe frontier, or below the floor
        ├── Outdated                it was changed since whoever changes it looked
        ├── SinkRestored            the sink lies behind what it said before
        └── Refused                 the protocol says no: fenced, lapsed, superseded, changed

Data lives in `args`, text in `__str__`, so that an error survives pickling; across Spark Connect, where only text
survives, tasks return `as_row` and the driver raises `from_row`. Clients read `code` and the data, never the text.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

from recovery_api.domain.commands import command_line


class FencepostError(Exception):
    """Base of everything raised on purpose. `fields` names `args` in order; `template` is the text a person reads."""

    code: ClassVar[str] = "error"
    fields: ClassVar[tuple[str, ...]] = ("problem",)
    template: ClassVar[str] = "{problem}"
    is_transient: ClassVar[bool] = False
    _by_code: ClassVar[dict[str, type[FencepostError]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        FencepostError._by_code[cls.code] = cls

    def __init__(self, *args: Any, **data: Any) -> None:
        missing = object()
        rest = [data.pop(name, missing) for name in self.fields[len(args) :]]
        if data:
            raise TypeError(f"{type(self).__name__} has no field {sorted(data)}")
        super().__init__(*args, *("" if value is missing else value for value in rest))

    @property
    def data(self) -> dict[str, Any]:
        return dict(zip(self.fields, self.args, strict=True))

    def __str__(self) -> str:
        return " ".join(self.template.format(**self.data).split())

    def as_row(self) -> dict[str, Any]:
        return {"code": self.code, "data": self.data, "text": str(self), "is_transient": self.is_transient}

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> FencepostError:
        kind = cls._by_code.get(row["code"], FencepostError)
        if kind is FencepostError:
            return FencepostError(row.get("text", row["code"]))
        return kind(**{name: row["data"].get(name, "") for name in kind.fields})

    def because(self, cause: BaseException) -> Self:
        """Same error with `cause` chained, for drivers' exceptions mapped at a connector's edge."""
        self.__cause__ = cause
        return self


class TransientError(FencepostError):
    code = "transient"
    is_transient = True


class Unreachable(TransientError):
    code = "unreachable"
    fields: ClassVar[tuple[str, ...]] = ("endpoint", "reason")
    template = "Cannot reach {endpoint}: {reason}. Check that it is up and that the address is right, then try again."


class NoAnswer(Unreachable):
    code = "no_answer"
    fields = ("endpoint", "seconds", "step", "seen")
    template = (
        "{endpoint} did not answer within {seconds} s, at {step}: its last word is not known ({seen}). "
        "What became of it is asked of the sink before anything else is done."
    )


class OutOfRoom(TransientError):
    code = "out_of_room"
    fields = ("endpoint", "what", "remedy")
    template = "{endpoint} has no room: {what}. {remedy}"


class SinkBusy(TransientError):
    code = "sink_busy"
    fields = ("waits_for", "waited_seconds")
    template = "The sink waited {waited_seconds} s for {waits_for}. End it, or try again."


class NotFlushed(TransientError):
    code = "not_flushed"
    fields = ("endpoint", "waited_seconds")
    template = (
        "After {waited_seconds} s {endpoint} has not written to disk what was read of it, so a crash could still take it "
        "back. Look at the server's disk and at its WAL writer, then try again."
    )


class SnapshotLost(TransientError):
    code = "snapshot_lost"
    fields = ("endpoint", "reason")
    template = "The snapshot at {endpoint} is gone ({reason}); the read starts again."


class EngineUnavailable(TransientError):
    code = "engine_unavailable"
    fields = ("engine", "reason")
    template = "{engine} does not answer: {reason}. Nothing is lost; the work stays queued."


class EvidenceUnwritable(TransientError):
    code = "evidence_unwritable"
    fields = ("path", "reason")
    template = "{path} cannot be written or read: {reason}. Make room or mount it again; the work is tried again."


class ControlDatabaseAway(TransientError):
    code = "control_database_away"
    fields = ("reason",)
    template = "The control database did not end a statement ({reason}). Nothing is lost; the work is tried again."


class LedgerMoved(TransientError):
    code = "ledger_moved"
    fields = ("pipeline",)
    template = (
        "Another reading of {pipeline} was recorded while this one went on: it is read once more, on top of that."
    )


class Frozen(TransientError):
    code = "frozen"
    fields = ("action", "what", "by", "since", "reason", "lift")
    template = (
        "{action} was refused: {what} is frozen {by} since {since}, because: {reason} Nothing is sent until: {lift}"
    )


class StoodStill(TransientError):
    code = "stood_still"
    fields = ("step", "seconds")
    template = (
        "It made no progress for {seconds} s while {step}: an end, or the network to it, does not answer. It was given "
        "back, and whoever takes it asks the sink first."
    )


class TerminalError(FencepostError):
    code = "terminal"


class BadInput(TerminalError):
    code = "bad_input"
    fields: ClassVar[tuple[str, ...]] = ("field", "problem", "remedy")
    template = "{field}: {problem}. {remedy}"


class UnknownOption(BadInput):
    code = "unknown_option"
    fields = ("field", "known", "nearest")
    template = "{field}: no such option. {nearest} Known options: {known}."


class BadCoordinate(BadInput):
    code = "bad_coordinate"
    fields = ("field", "text", "expected")
    template = "{field}: {text!r} is not a coordinate here; expected {expected}."


class BadFile(BadInput):
    code = "bad_file"
    fields = ("file", "where", "problem", "remedy")
    template = "{file}, {where}: {problem}. {remedy}"


class UncanonicalContent(BadInput):
    """A content that has no canonical text."""

    code = "uncanonical_content"


class AccessDenied(TerminalError):
    code = "access_denied"
    fields = ("endpoint", "problem", "remedy")
    template = "{endpoint}: {problem}. {remedy}"


class NotFound(TerminalError):
    code = "not_found"
    fields = ("what", "where", "nearest")
    template = "{what} does not exist in {where}. {nearest}"


class Unsuitable(TerminalError):
    code = "unsuitable"
    fields = ("what", "problem", "remedy")
    template = "{what}: {problem}. {remedy}"


class EngineLacks(TerminalError):
    code = "engine_lacks"
    fields = ("engine", "lacks")
    template = "{engine} cannot do this work. {lacks} Look at all of it: manage.py check_engine."


class EvidenceGone(TerminalError):
    code = "evidence_gone"
    fields = ("part", "place", "reason")
    template = "{part} of the evidence at {place} is not what was written there: {reason}. Audit or plan again."


class CutShort(TerminalError):
    code = "cut_short"
    fields = ("endpoint", "setting", "value", "step", "remedy")
    template = "{setting} = {value} at {endpoint} ended {step} before it was done. {remedy}"


class FrontierRefused(TerminalError):
    code = "frontier_refused"
    fields = ("frontier", "limit", "limit_name", "ground")
    template = "Frontier {frontier} cannot be judged: the {limit_name} is {limit} ({ground})."


class Refused(TerminalError):
    code = "refused"
    fields = ("action", "reason", "remedy")
    template = "{action} was refused: {reason}. {remedy}"


class Outdated(TerminalError):
    code = "outdated"
    fields = ("what", "version")
    template = (
        "{what} was changed since you read it, and nothing was written. Read it again, look whether your change still fits, "
        "and send it with the ETag that you get."
    )


class SinkRestored(TerminalError):
    code = "sink_restored"
    fields = ("sink", "says")
    template = "{says}"

    def __str__(self) -> str:
        return f"{super().__str__()} Settle it, then plan again: {command_line('sinks', 'settle', self.data['sink'])}."
