"""The protections that matter, by area."""

from __future__ import annotations

from tests.guards.guard import Guard
from tests.guards.listed import (
    appended,
    archive,
    exports,
    faces,
    following,
    grounds,
    identity,
    kit,
    ledger,
    liveness,
    mapping,
    omissions,
    pairs,
    protocol,
    rights,
    schedules,
    strategies,
    stretches,
    unfenced,
    values,
    verdicts,
)

GUARDS: tuple[Guard, ...] = (
    *kit.GUARDS,
    *protocol.GUARDS,
    *appended.GUARDS,
    *strategies.GUARDS,
    *grounds.GUARDS,
    *verdicts.GUARDS,
    *exports.GUARDS,
    *stretches.GUARDS,
    *identity.GUARDS,
    *rights.GUARDS,
    *mapping.GUARDS,
    *unfenced.GUARDS,
    *pairs.GUARDS,
    *omissions.GUARDS,
    *values.GUARDS,
    *ledger.GUARDS,
    *archive.GUARDS,
    *following.GUARDS,
    *liveness.GUARDS,
    *faces.GUARDS,
    *schedules.GUARDS,
)
