"""The control plane's tables. Invariants are constraints whose names read as sentences; nothing works in `save()`."""

from recovery_api.models.alerts import Alert, AlertGroup, AlertLine, Mute
from recovery_api.models.archives import ArchivePart
from recovery_api.models.audits import Audit, AuditStatus
from recovery_api.models.blocks import LedgerBlock, LedgerReading
from recovery_api.models.deliveries import Delivery, Destination, Route
from recovery_api.models.drills import Drill, DrillState
from recovery_api.models.ends import End, Sink, Source
from recovery_api.models.events import Event, EventKind
from recovery_api.models.evidence_places import EvidencePlace
from recovery_api.models.findings import EventContent, Finding
from recovery_api.models.freezes import Freeze
from recovery_api.models.generations import (
    FINAL_CLAIM_STATES,
    Claim,
    ClaimState,
    Generation,
    GenerationFate,
    GenerationPurpose,
)
from recovery_api.models.headroom import HeadroomFigure
from recovery_api.models.history import Observation, Upkeep
from recovery_api.models.idempotency import RememberedAnswer
from recovery_api.models.images import ImageAudit
from recovery_api.models.incidents import Incident
from recovery_api.models.intents import LIVE_STATES, Intent, IntentAction, IntentState
from recovery_api.models.ledger import LedgerItem, LedgerLane, SettledItems
from recovery_api.models.looking import LastLook, SavedFilter
from recovery_api.models.omissions import AcknowledgedOmission, OmissionPreview, PreviewedOmission
from recovery_api.models.pipelines import Pipeline
from recovery_api.models.plans import WAITING_STATES, Plan, PlanState
from recovery_api.models.recoveries import Recovery, RecoveryOutcome, RecoveryState, Wanted
from recovery_api.models.refusals import RefusalCount
from recovery_api.models.schedules import Schedule
from recovery_api.models.tokens import Token
from recovery_api.models.workers import Worker

__all__ = [
    "FINAL_CLAIM_STATES",
    "LIVE_STATES",
    "WAITING_STATES",
    "AcknowledgedOmission",
    "Alert",
    "AlertGroup",
    "AlertLine",
    "ArchivePart",
    "Audit",
    "AuditStatus",
    "Claim",
    "ClaimState",
    "Delivery",
    "Destination",
    "Drill",
    "DrillState",
    "End",
    "Event",
    "EventContent",
    "EventKind",
    "EvidencePlace",
    "Finding",
    "Freeze",
    "Generation",
    "GenerationFate",
    "GenerationPurpose",
    "HeadroomFigure",
    "ImageAudit",
    "Incident",
    "Intent",
    "IntentAction",
    "IntentState",
    "LastLook",
    "LedgerBlock",
    "LedgerItem",
    "LedgerLane",
    "LedgerReading",
    "Mute",
    "Observation",
    "OmissionPreview",
    "Pipeline",
    "Plan",
    "PlanState",
    "PreviewedOmission",
    "Recovery",
    "RecoveryOutcome",
    "RecoveryState",
    "RefusalCount",
    "RememberedAnswer",
    "Route",
    "SavedFilter",
    "Schedule",
    "SettledItems",
    "Sink",
    "Source",
    "Token",
    "Upkeep",
    "Wanted",
    "Worker",
]
