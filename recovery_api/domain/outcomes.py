"""The one table of outcomes: what each word means for a pipeline's status, an exit code, and whether it is green.

The law: only *exactly once at f* is green. Pages, REST, commands, the certificate and the database's constraints read
this table and decide nothing of their own; a further promise (*inside the horizon*, *by choice*) is one
row more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from recovery_api.domain.identity import NOT_JUDGED

EXIT_DONE, EXIT_OWED, EXIT_BAD_INPUT, EXIT_UNKNOWN, EXIT_GIVEN = 0, 1, 2, 3, 4
EXIT_WORST_FIRST = (EXIT_OWED, EXIT_UNKNOWN, EXIT_GIVEN, EXIT_DONE)


class Status(StrEnum):
    """What a person is told first, of an audit and of a pipeline; worst first."""

    HAZARD = "hazard"
    """Something wrong was accepted; something may be owed besides. A person decides."""
    OWED = "owed"
    """Hazard-free, and obligations at or below f were not accepted. A recovery moves it on."""
    UNKNOWN = "unknown"
    """The evidence does not reach. Never clean."""
    RUNNING = "running"
    """A recovery is unfinished. Of a pipeline only."""
    ACKNOWLEDGED = "acknowledged"
    """Hazard-free, and every lost event was taken out of the obligation on purpose. Still lost in the strict verdict."""
    NOTHING_OWED_OF_KEPT = "nothing_owed_of_kept"
    """Every obligation that the source still holds was accepted; rows go from it once they were delivered, so that not
    every acceptance can be shown to be committed. What such a source can come to at best."""
    COMPLETE_BY_IDENTITY = "complete_by_identity"
    """Every obligation's id is in the record, and none twice; contents and premature entries were not judged. What a
    record that knows only message ids can come to at best."""
    EXACTLY_ONCE_GIVEN = "exactly_once_given"
    """The counts of *exactly once at f*, on a ground that is attested or assumed: what was given is named with it."""
    EXACTLY_ONCE = "exactly_once"
    """Hazard-free and complete at f, in both grades, on a proven ground."""


class Outcome(StrEnum):
    """How a recovery ended, as verified at the sink."""

    EXACTLY_ONCE = "exactly_once"
    """An audit after the fire found exactly once at f."""
    EXACTLY_ONCE_GIVEN = "exactly_once_given"
    """The same, on a ground that is attested or assumed."""
    NOTHING_OWED_OF_KEPT = "nothing_owed_of_kept"
    """The same of what the source still holds: rows go from it once they were delivered."""
    COMPLETE_WITH_ACKNOWLEDGED = "complete_with_acknowledged"
    """All that is lost at f is acknowledged."""
    COMPLETE_HAND_OVER_UNVERIFIED = "complete_hand_over_unverified"
    """Complete at f; where the relay starts could not be checked. Stays visible."""
    INCOMPLETE = "incomplete"
    """Something is still lost at f; the next delta carries it."""
    INCOMPLETE_ALTERED = "incomplete_altered"
    """The sink holds an owed coordinate with other content: no fire can deliver it. A person decides."""
    HAZARD = "hazard"
    """Complete at f, and hazards that were there before remain."""
    FENCED = "fenced"
    """A newer generation passed this one; nothing landed under it."""
    REFUSED = "refused"
    """Under the claim the batch was no longer the approved one; nothing landed. Plan again."""
    STOPPED = "stopped"
    """A person stopped it at a safe point."""
    UNKNOWN = "unknown"
    """The sink could not be read. Settle it when the sink answers; until then nothing may be concluded."""


class ImageStatus(StrEnum):
    """What comparing a copy of state with the history came to (domain.images). It adds nothing to a pipeline's status: of
    store and ledger neither is derived from the other."""

    MISMATCHED = "mismatched"
    """A key's content is not what the history says. A person decides."""
    UNKNOWN = "unknown"
    """The evidence does not reach, for one key at least, and no difference is certain."""
    MISMATCH_FREE_GIVEN = "mismatch_free_given"
    """As *mismatch-free at f*, on what is named with it."""
    MISMATCH_FREE = "mismatch_free"
    """Every key in scope holds at the target what the history says at f."""


class Alert(StrEnum):
    """What an outcome tells of until another takes it back, by name."""

    OWED = "owed"
    """Obligations are lost, and nobody acknowledged them."""
    HAZARD = "hazard"
    """Something wrong was accepted."""
    UNKNOWN = "unknown"
    """The evidence does not reach."""
    HAND_OVER = "hand_over"
    """Nobody has shown where the relay goes on from."""
    NOT_DELIVERED = "not_delivered"
    """A recovery ended without delivering what it was to."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """One row. `status`: what a pipeline shows by it. None: it adds nothing to what was read of the record.

    `is_clean`: nothing was lost and nothing wrong at f. `opens`, `resolves`: the alerts it raises and takes back.
    """

    words: str
    status: Status | None
    exit_code: int
    is_green: bool = False
    is_clean: bool = False
    opens: tuple[Alert, ...] = ()
    resolves: tuple[Alert, ...] = ()


RECORD = (Alert.OWED, Alert.HAZARD, Alert.UNKNOWN)
"""What a reading of the record that found nothing takes back."""
WELL = (*RECORD, Alert.NOT_DELIVERED, Alert.HAND_OVER)
"""And what it shows of recoveries before it: nothing is owed, and the relay went on from where it should."""

OUTCOMES: Mapping[str, Meaning] = {
    # what a reading of the record comes to; a recovery may end in the same word
    Status.EXACTLY_ONCE: Meaning(
        "exactly once at f",
        Status.EXACTLY_ONCE,
        EXIT_DONE,
        is_green=True,
        is_clean=True,
        resolves=WELL,
    ),
    Status.EXACTLY_ONCE_GIVEN: Meaning(
        "exactly once at f, given …",
        Status.EXACTLY_ONCE_GIVEN,
        EXIT_GIVEN,
        is_clean=True,
        resolves=WELL,
    ),
    Status.COMPLETE_BY_IDENTITY: Meaning(
        f"complete by identity at f; {NOT_JUDGED}",
        Status.COMPLETE_BY_IDENTITY,
        EXIT_GIVEN,
        is_clean=True,
        resolves=(Alert.OWED, Alert.UNKNOWN, Alert.NOT_DELIVERED, Alert.HAND_OVER),
    ),
    Status.NOTHING_OWED_OF_KEPT: Meaning(
        "nothing owed of what is kept at f",
        Status.NOTHING_OWED_OF_KEPT,
        EXIT_GIVEN,
        is_clean=True,
        resolves=WELL,
    ),
    Status.OWED: Meaning("owed", Status.OWED, EXIT_OWED, opens=(Alert.OWED,), resolves=(Alert.HAZARD, Alert.UNKNOWN)),
    Status.HAZARD: Meaning("hazard", Status.HAZARD, EXIT_OWED, opens=(Alert.HAZARD,), resolves=(Alert.UNKNOWN,)),
    Status.ACKNOWLEDGED: Meaning(
        "acknowledged", Status.ACKNOWLEDGED, EXIT_OWED, resolves=(*RECORD, Alert.NOT_DELIVERED)
    ),
    Status.UNKNOWN: Meaning("unknown", Status.UNKNOWN, EXIT_UNKNOWN, opens=(Alert.UNKNOWN,)),
    Status.RUNNING: Meaning("running", Status.RUNNING, EXIT_UNKNOWN),
    # how else a recovery may end
    Outcome.COMPLETE_WITH_ACKNOWLEDGED: Meaning(
        "complete with acknowledged omissions",
        Status.ACKNOWLEDGED,
        EXIT_OWED,
        resolves=(*RECORD, Alert.NOT_DELIVERED),
    ),
    Outcome.COMPLETE_HAND_OVER_UNVERIFIED: Meaning(
        "complete, hand-over unverified",
        None,
        EXIT_OWED,
        opens=(Alert.HAND_OVER,),
        resolves=(*RECORD, Alert.NOT_DELIVERED),
    ),
    Outcome.INCOMPLETE: Meaning(
        "incomplete", Status.OWED, EXIT_OWED, opens=(Alert.OWED,), resolves=(Alert.UNKNOWN, Alert.NOT_DELIVERED)
    ),
    Outcome.INCOMPLETE_ALTERED: Meaning(
        "incomplete, altered at the sink",
        Status.HAZARD,
        EXIT_OWED,
        opens=(Alert.OWED, Alert.HAZARD),
        resolves=(Alert.UNKNOWN, Alert.NOT_DELIVERED),
    ),
    Outcome.FENCED: Meaning("fenced", None, EXIT_OWED, opens=(Alert.NOT_DELIVERED,)),
    Outcome.REFUSED: Meaning("refused", None, EXIT_OWED, opens=(Alert.NOT_DELIVERED,)),
    Outcome.STOPPED: Meaning("stopped", None, EXIT_OWED, opens=(Alert.NOT_DELIVERED,)),
    # a copy of state beside the history; unknown is the row of that word
    ImageStatus.MISMATCH_FREE: Meaning("mismatch-free at f", None, EXIT_DONE),
    ImageStatus.MISMATCH_FREE_GIVEN: Meaning("mismatch-free at f, given …", None, EXIT_GIVEN),
    ImageStatus.MISMATCHED: Meaning("mismatched at f", None, EXIT_OWED),
}

WORST_FIRST: tuple[Status, ...] = tuple(Status)
READ: tuple[Status, ...] = tuple(status for status in Status if status is not Status.RUNNING)
"""What one reading of the record can come to: the statuses of an audit."""
CERTIFIES: tuple[Status, ...] = (Status.EXACTLY_ONCE, Status.EXACTLY_ONCE_GIVEN)
"""By which an audit certifies what lies below its frontier; by identity nothing premature was looked for."""
CERTIFIES_BY_IDENTITY: tuple[Status, ...] = (Status.COMPLETE_BY_IDENTITY,)
"""By which an audit certifies that ids were accepted, to a further audit by ids alone and to no other."""

CLEAN: tuple[Status, ...] = tuple(status for status in READ if OUTCOMES[status].is_clean)
"""The statuses of an audit that found nothing lost and nothing wrong, as far as it could look; green or not."""


def exit_code_worst(codes: Iterable[int]) -> int:
    """Of several pipelines the worst counts: 1, 3, 4, 0. Nothing at all is 0.

    >>> exit_code_worst([0, 4, 3]), exit_code_worst([3, 1]), exit_code_worst([4, 0]), exit_code_worst([])
    (3, 1, 4, 0)
    """
    return min(codes, key=EXIT_WORST_FIRST.index, default=EXIT_DONE)


@dataclass(frozen=True, slots=True)
class Verified:
    """What the audit after the fire found at f. `hidden_count`: owed, and altered at the sink, acknowledged ones apart.

    `is_given`: its ground is attested or assumed. `is_of_kept`: of what the source still holds alone.
    """

    is_known: bool
    lost_count: int
    acknowledged_count: int
    hidden_count: int
    hazard_count: int
    is_handed_over: bool
    is_given: bool = False
    is_of_kept: bool = False


def outcome_conclude(verified: Verified | None) -> Outcome:
    """The outcome of a recovery that has fired. None: it was never verified, so nothing may be concluded.

    >>> outcome_conclude(Verified(True, 0, 0, 0, 0, True)), outcome_conclude(None)
    (<Outcome.EXACTLY_ONCE: 'exactly_once'>, <Outcome.UNKNOWN: 'unknown'>)
    """
    if verified is None or not verified.is_known:
        return Outcome.UNKNOWN
    if verified.hidden_count:
        return Outcome.INCOMPLETE_ALTERED
    if verified.lost_count > verified.acknowledged_count:
        return Outcome.INCOMPLETE
    if verified.hazard_count:
        return Outcome.HAZARD
    if verified.acknowledged_count:
        return Outcome.COMPLETE_WITH_ACKNOWLEDGED
    if not verified.is_handed_over:
        return Outcome.COMPLETE_HAND_OVER_UNVERIFIED
    if verified.is_of_kept:
        return Outcome.NOTHING_OWED_OF_KEPT
    return Outcome.EXACTLY_ONCE_GIVEN if verified.is_given else Outcome.EXACTLY_ONCE
