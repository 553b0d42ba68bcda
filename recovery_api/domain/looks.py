"""How each word for a state is shown: what a person reads, a tone and a shape, never a colour alone.

An outcome is shown in the look of its status in the table of outcomes: green only where that is *exactly once*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from recovery_api.domain.headroom.evidence import EXPIRED
from recovery_api.domain.outcomes import OUTCOMES, ImageStatus, Outcome, Status


@dataclass(frozen=True, slots=True)
class Look:
    """`tone`: good | given | warn | bad | unsure | busy | calm | quiet. `shape`: an icon of components/icon.html."""

    says: str
    tone: str
    shape: str


TONES: Mapping[Status | None, tuple[str, str]] = {
    # status -> tone and shape; None: it adds nothing to what was read of the record
    Status.EXACTLY_ONCE: ("good", "check"),
    Status.EXACTLY_ONCE_GIVEN: ("given", "check-square"),
    Status.NOTHING_OWED_OF_KEPT: ("given", "check-square"),
    Status.COMPLETE_BY_IDENTITY: ("given", "check-square"),
    Status.OWED: ("warn", "triangle"),
    Status.HAZARD: ("bad", "octagon"),
    Status.UNKNOWN: ("unsure", "question"),
    Status.ACKNOWLEDGED: ("calm", "minus"),
    Status.RUNNING: ("busy", "run"),
    None: ("quiet", "minus"),
}
UNSURE = ("unsure", "question")
"""Of a status that has no row here: never as good."""


def tone_of(status: Status | None) -> tuple[str, str]:
    """Tone and shape of a status."""
    return TONES.get(status, UNSURE)


LOOKS: Mapping[str, Look] = {
    **{str(word): Look(row.words, *tone_of(row.status)) for word, row in OUTCOMES.items()},
    Outcome.COMPLETE_HAND_OVER_UNVERIFIED: Look(
        OUTCOMES[Outcome.COMPLETE_HAND_OVER_UNVERIFIED].words, "warn", "triangle"
    ),
    # a copy of state beside the history: calm at best, for it says nothing of what was delivered
    ImageStatus.MISMATCH_FREE: Look(OUTCOMES[ImageStatus.MISMATCH_FREE].words, "calm", "check"),
    ImageStatus.MISMATCH_FREE_GIVEN: Look(OUTCOMES[ImageStatus.MISMATCH_FREE_GIVEN].words, "given", "check-square"),
    ImageStatus.MISMATCHED: Look(OUTCOMES[ImageStatus.MISMATCHED].words, "bad", "octagon"),
    # plans
    "draft": Look("queued", "busy", "run"),
    "computing": Look("computing", "busy", "run"),
    "ready": Look("ready", "warn", "triangle"),
    "nothing_owed": Look("nothing to send", "calm", "minus"),
    "refused": Look("refused", "bad", "octagon"),
    "approved": Look("approved", "calm", "check"),
    "lapsed": Look("lapsed", "quiet", "minus"),
    "applied": Look("applied", "calm", "check"),
    # intents
    "queued": Look("queued", "busy", "run"),
    "taken": Look("running", "busy", "run"),
    "done": Look("done", "good", "check"),
    "failed": Look("failed", "bad", "octagon"),
    "cancelled": Look("cancelled", "quiet", "minus"),
    # claims and generations
    "open": Look("open", "warn", "triangle"),
    "fired": Look("fired", "good", "check"),
    "superseded": Look("superseded", "quiet", "minus"),
    "released": Look("released", "quiet", "minus"),
    "none": Look("none", "quiet", "minus"),
    "allocated": Look("allocated", "quiet", "minus"),
    "claimed": Look("claimed", "warn", "triangle"),
    "started": Look("started", "calm", "check"),
    # headroom
    "headroom_ok": Look("ok", "calm", "check"),
    "headroom_low": Look("low", "warn", "triangle"),
    "headroom_gone": Look("gone", "bad", "octagon"),
    "headroom_unknown": Look("unknown", *UNSURE),
    # a verdict, or a certificate, whose evidence an end may have forgotten
    EXPIRED: Look("unknown (evidence expired)", *UNSURE),
    # tokens
    "standing": Look("standing", "good", "check"),
    "expired": Look("expired", "quiet", "minus"),
    "revoked": Look("revoked", "quiet", "minus"),
    # incidents; `open` is shown as a claim's is
    "mitigated": Look("mitigated", "calm", "minus"),
    "resolved": Look("resolved", "given", "check-square"),
    "closed": Look("closed", "quiet", "minus"),
    # freezes
    "frozen": Look("frozen", "warn", "octagon"),
    "not_frozen": Look("not frozen", "calm", "check"),
    # drills
    "requested": Look("requested", "busy", "run"),
    "passed": Look("passed", "good", "check"),
    "not_applicable": Look("not applicable", "quiet", "minus"),
    # worker, engine and broker
    "seen": Look("seen", "calm", "check"),
    "away": Look("missing", "bad", "octagon"),
    "unwatched": Look("not watched", "unsure", "question"),
    # alerts and what is sent of them: nothing of them is green, for an alert that is over says nothing of the rest
    "critical": Look("critical", "bad", "octagon"),
    "error": Look("error", "warn", "triangle"),
    "warning": Look("warning", "unsure", "question"),
    "alert_open": Look("open", "warn", "triangle"),
    "alert_acknowledged": Look("acknowledged", "calm", "minus"),
    "alert_muted": Look("muted", "quiet", "minus"),
    "alert_resolved": Look("resolved", "calm", "check"),
    "delivery_waiting": Look("waiting", "busy", "run"),
    "delivery_sending": Look("being sent", "busy", "run"),
    "delivery_sent": Look("taken", "calm", "check"),
    "delivery_superseded": Look("superseded", "quiet", "minus"),
    "delivery_refused": Look("refused", "bad", "octagon"),
    "delivery_given_up": Look("given up", "bad", "octagon"),
    "destination_on": Look("on", "calm", "check"),
    "destination_off": Look("off", "bad", "octagon"),
    # conditions and ends
    "holds": Look("holds", "good", "check"),
    "fails": Look("fails", "bad", "octagon"),
    "can_serve": Look("can serve", "good", "check"),
    "cannot_serve": Look("cannot serve", "bad", "octagon"),
    "untested": Look("never tested", "unsure", "question"),
    "restored": Look("restored", "bad", "octagon"),
    "denied": Look("denied", "bad", "octagon"),
}


def look_of(word: str | None) -> Look:
    """A word that is not known is shown as it stands, never as good.

    >>> look_of("exactly_once").tone, look_of("quite fine").tone, look_of(None).tone
    ('good', 'busy', 'unsure')
    """
    known = LOOKS.get(str(word))
    return known or Look(str(word).replace("_", " "), "busy" if word else "unsure", "run")
