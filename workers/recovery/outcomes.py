"""How a recovery ended, as verified at the sink, and the certificate that says so."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds
from django.utils import timezone

from recovery_api.domain.actors import by
from recovery_api.domain.archives import sent_says, unusable_says
from recovery_api.domain.attestations import ONLY_RECOVERER, RELAY_DRAINED
from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import EvidenceGone
from recovery_api.domain.evidence_places import Stored
from recovery_api.domain.frontiers import coordinate_from_row, frontier_from_row
from recovery_api.domain.hand_over import is_handed_over, start_position
from recovery_api.domain.outcomes import Outcome, Verified, outcome_conclude
from recovery_api.domain.plans import approval_refusal
from recovery_api.domain.verdicts import verdict_total
from recovery_api.models import Audit, AuditStatus, Intent, Plan, Recovery, RecoveryOutcome
from recovery_api.selectors.evidence_places import stored_get
from recovery_api.selectors.recoveries import plan_strategy, recovery_attested
from workers.evidence.pinning import BEFORE_EVERYTHING
from workers.evidence.read import Evidence
from workers.evidence.schemas import FINDING
from workers.evidence.store import FINDINGS, parts_read, rows_head
from workers.recovery.archiving import fired_from_archive
from workers.recovery.ends import paths_read
from workers.recovery.looking import ends_look
from workers.recovery.verdicts import audit_write, lane_verdicts, total_says
from workers.spark.jobs.redrive import batch_inspect, later_keys_count

PREVIOUS_RUN = (RELAY_DRAINED, ONLY_RECOVERER)
"""What is attested for the condition P2."""


def start_positions(found: Evidence) -> dict[str, Coordinate]:
    """Where the next relay run may start, lane by lane: everything at or below it is accepted once this batch lands.

    That is the frontier, or the place just before the lowest event that stays owed (the sink cannot hold it).
    """
    start = {
        lane: one.frontier
        for lane, one in found.lanes.items()
        if lane in found.source_reading.lanes and one.frontier != BEFORE_EVERYTHING
    }
    excluded = found.spec.excluded
    if excluded is not None:
        for lane in start:
            mine = excluded.filter(pc.equal(excluded["lane"], lane))
            if mine.num_rows:
                start[lane] = start_position(start[lane], Coordinate(pc.min(mine["position"]).as_py() - 1))
    return start


def not_as_approved(found: Evidence) -> str | None:
    """Why the batch read under the claim is not the approved one, or None."""
    approval = found.approval or {}
    complaint = approval_refusal(approval.get("not_approved", 0), approval.get("unexplained", 0))
    why = unusable_says(found.unarchived)
    return f"{complaint} {why}" if complaint and why else complaint


def overtaken(session: Any, plan: Plan, found: Evidence) -> str | None:
    """Why an effect that needs order must not be fired now, or None: more keys than were confirmed were overtaken."""
    if not found.batch_count or not found.spec.sink.record().needs_order:
        return None
    now = later_keys_count(session, batch_inspect(session, found)["stored"]).count
    confirmed = int((plan.pins.get("later_keys") or {"count": "0"})["count"])
    if now <= confirmed:
        return None
    return f"{now} keys of the batch have a later event accepted by now, and {confirmed} were confirmed."


def verification_record(
    recovery: Recovery, intent: Intent, found: Evidence, started_at: datetime, attested: Sequence[str] = ()
) -> Audit:
    """The audit after the fire, kept as this recovery's verification."""
    return audit_write(
        recovery.pipeline,
        found,
        started_at=started_at,
        is_full=False,
        paths=paths_read(recovery.pipeline),
        intent=intent,
        recovery=recovery,
        attested=attested,
        ends=ends_look(found),
    )


def verification_says(found: Evidence, attested: Sequence[str] = ()) -> str:
    return " ".join(total_says(verdict_total(lane_verdicts(found, attested))))


def outcome_of(
    recovery: Recovery, stored: Mapping[str, Any] | None = None, attested: Sequence[str] = ()
) -> tuple[str, str]:
    """The outcome that the last verification supports, and the sentence that says it.

    `stored`: the relay's start as the sink holds it; None: this strategy hands nothing over. `attested`: what the
    outcome rests on, by whatever was attested; then it is never more than *given*.
    """
    audit = recovery.audits.order_by("-finished_at").first()
    if audit is None:
        return RecoveryOutcome.UNKNOWN, "It was never verified: nothing may be concluded."
    hidden = _hidden(audit)
    archived = fired_from_archive(recovery)
    outcome = outcome_conclude(
        Verified(
            is_known=audit.status != AuditStatus.UNKNOWN,
            lost_count=audit.lost_count,
            acknowledged_count=audit.acknowledged_count,
            hidden_count=hidden,
            hazard_count=audit.premature_count + audit.duplicate_count,
            is_handed_over=stored is None or _is_handed_over(recovery, stored),
            is_given=bool(attested) or audit.status == AuditStatus.EXACTLY_ONCE_GIVEN,
            is_of_kept=audit.status == AuditStatus.NOTHING_OWED_OF_KEPT,
        )
    )
    says = [_outcome_says(outcome, recovery, audit, hidden), sent_says(archived)]
    return outcome.value, " ".join(one for one in says if one)


def _outcome_says(outcome: Outcome, recovery: Recovery, audit: Audit, hidden: int) -> str:
    at = ", ".join(lane["frontier_says"] for lane in audit.lanes.values())
    match outcome:
        case Outcome.UNKNOWN:
            return f"The sink could not be read whole at {at}: unknown. {audit.says}"
        case Outcome.INCOMPLETE_ALTERED:
            where = ", ".join(_hidden_coordinates(audit))
            return (
                f"Incomplete at {at}, altered at the sink: {_events(hidden)} cannot be delivered, because the sink holds "
                f"other content at {'its coordinate' if hidden == 1 else 'their coordinates'} ({where}). A person "
                f"decides. {recovery.landed_count:,} delivered."
            )
        case Outcome.INCOMPLETE:
            lost = audit.lost_count - audit.acknowledged_count
            late = "".join(f" Late: {lane['late']}." for lane in audit.lanes.values() if lane.get("late"))
            if (gone := _gone(audit)) == lost:
                return (
                    f"Still owed at {at}: {_events(lost)} whose content is gone at the source, so that no plan can send "
                    f"{'it' if lost == 1 else 'them'}. {recovery.landed_count:,} delivered. Read the rest somewhere else, "
                    "or acknowledge it."
                )
            late += f" Of them {gone:,} are gone at the source and cannot be sent." if gone else ""
            return (
                f"Incomplete at {at}: {_events(lost)} still missing.{late} Plan again: the next plan carries the rest."
            )
        case Outcome.HAZARD:
            return (
                f"Complete at {at}, and not clean: {audit.premature_count:,} accepted entries are not as committed, "
                f"{audit.duplicate_count:,} events were accepted more than once. A recovery adds none and takes none "
                "away: look at the findings."
            )
        case Outcome.COMPLETE_WITH_ACKNOWLEDGED:
            return f"Complete at {at} but for {_events(audit.acknowledged_count)} that somebody acknowledged as lost."
        case Outcome.COMPLETE_HAND_OVER_UNVERIFIED:
            return f"Complete at {at}, hand-over unverified: the sink holds no start position for the next relay run."
        case Outcome.NOTHING_OWED_OF_KEPT:
            return (
                f"Nothing is owed of what the source keeps at {at}: {recovery.landed_count:,} delivered, "
                f"{recovery.absorbed_count:,} already present."
            )
        case _:
            given = f", given {'; and '.join(audit.givens)}" if outcome is Outcome.EXACTLY_ONCE_GIVEN else ""
            return (
                f"Exactly once at {at}{given}: {recovery.landed_count:,} delivered, "
                f"{recovery.absorbed_count:,} already present."
            )


def _gone(audit: Audit) -> int:
    """Owed events, acknowledged ones apart, that neither the source nor the archive holds any more."""
    counts = [lane["counts"] for lane in audit.lanes.values()]
    names = {"lost_remembered": 1, "acknowledged_remembered": -1, "lost_archived": -1}
    return sum(sign * int(one.get(name, 0)) for one in counts for name, sign in names.items())


def _events(count: int) -> str:
    return f"{count:,} {'event' if count == 1 else 'events'}"


def certificate_make(recovery: Recovery, outcome: str, says: str) -> dict[str, Any]:
    """What was judged, on which evidence with which digests, which conditions held, what the sink recorded."""
    audit = recovery.audits.order_by("-finished_at").first()
    plan = recovery.plan
    return {
        "recovery": str(recovery.id),
        "pipeline": recovery.pipeline.name,
        "outcome": outcome,
        "says": says,
        "frontier": recovery.frontier,
        "frontier_says": plan.pins.get("frontier_says"),
        "plan": {
            "id": str(plan.id),
            "digest": plan.digest,
            "author": plan.author,
            "approved_by": plan.approved_by,
            "approved_at": plan.approved_at and plan.approved_at.isoformat(),
            "batch": plan.batch,
            "conditions": conditions_attested(plan.conditions, recovery),
            "evidence_digest": plan.evidence_digest,
            "promise": plan.pins.get("promise"),
        },
        "strategy": plan_strategy(plan).name,
        "attestations": recovery_attested(recovery),
        "landed": recovery.landed_count,
        "absorbed": recovery.absorbed_count,
        "archived": fired_from_archive(recovery),
        "requested_by": recovery.requested_by,
        "reason": recovery.reason,
        "claims": [
            {
                "generation": str(claim.generation),
                "state": claim.state,
                "arm": claim.arm,
                "armed_count": claim.armed_count,
                "armed_digest": claim.armed_digest,
                "landed_count": claim.landed_count,
                "absorbed_count": claim.absorbed_count,
                "start": claim.start,
            }
            for claim in recovery.claims.order_by("generation")
        ],
        "verified": audit
        and {
            "audit": str(audit.id),
            "status": audit.status,
            "says": audit.says,
            "source_snapshot": audit.source_snapshot,
            "sink_snapshot": audit.sink_snapshot,
            "evidence_digest": audit.evidence_digest,
            "matching": audit.matching,
            "given": audit.givens,
            "not_provable": audit.weaknesses,
            "lanes": audit.lanes,
        },
        "made_at": timezone.now().isoformat(),
        "evidence_lasts": plan_strategy(plan).evidence_lasts,
        "evidence_until": audit and audit.evidence_until and audit.evidence_until.isoformat(),
        "evidence_says": audit.evidence_says if audit else "",
    }


def conditions_attested(conditions: list[dict[str, Any]], recovery: Recovery) -> list[dict[str, Any]]:
    """The plan's conditions; the one that rests on attestations says what was attested, by whom and when."""
    attested = [one for one in recovery_attested(recovery) if one["name"] in PREVIOUS_RUN]
    if not attested:
        return conditions
    said = "; ".join(str(one["given"]) for one in attested)
    at = f"{recovery.created_at:%Y-%m-%d %H:%M:%S} UTC"
    says = f"Attested {by(recovery.requested_by)} at {at}: {said}."
    return [{**one, "says": f"{one['says']} {says}"} if one["name"] == "P2" else one for one in conditions]


def certificate_digest(certificate: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(certificate, sort_keys=True, default=str).encode()).hexdigest()


def _is_handed_over(recovery: Recovery, stored: Mapping[str, Any]) -> bool:
    """Whether the sink holds, for every lane, a start no lower than where this recovery could put it."""
    for lane, frontier in frontier_from_row(recovery.frontier).items():
        start = coordinate_from_row(stored[lane]) if lane in stored else None
        if frontier != BEFORE_EVERYTHING and not is_handed_over(start, frontier):
            return False
    return True


PLACE = ["lane", "position", "ordinal"]
HIDDEN = (ds.field("finding") == "lost") & ds.field("is_keyed_hidden") & ~ds.field("is_acknowledged")


def _hidden(audit: Audit) -> int:
    """Owed events, acknowledged ones apart, whose coordinate the sink holds with other content."""
    if not any(int(lane["counts"]["lost_hidden"]) for lane in audit.lanes.values()):
        return 0
    return sum(rows.num_rows for _, rows in parts_read(_stored(audit), FINDINGS, FINDING, columns=PLACE, wanted=HIDDEN))


def _stored(audit: Audit) -> Stored:
    """What was just kept with it. Raises: EvidenceGone."""
    found = stored_get(audit.evidence_uri)
    if found is None:
        raise EvidenceGone("every part", audit.evidence_uri, "it is not kept any more")
    return found


def _hidden_coordinates(audit: Audit) -> list[str]:
    hidden = rows_head(_stored(audit), FINDINGS, FINDING, 5, PLACE, HIDDEN)
    spelled = {(row["position"], row["ordinal"]): row["coordinate"] for row in audit.findings}
    return [
        spelled.get((str(row["position"]), str(row["ordinal"])), f"{row['position']}:{row['ordinal']}")
        for row in hidden.to_pylist()
    ]
