"""The protections that matter, by area."""

from __future__ import annotations

from tests.guards.guard import Guard
from tests.guards.listed import (
    appended,
    faces,
    following,
    grounds,
    identity,
    kit,
    ledger,
    liveness,
    mapping,
    protocol,
    rights,
    unfenced,
    values,
    verdicts,
)

GUARDS: tuple[Guard, ...] = (
    *kit.GUARDS,
    *protocol.GUARDS,
    *appended.GUARDS,
    *grounds.GUARDS,
    *verdicts.GUARDS,
    *identity.GUARDS,
    *rights.GUARDS,
    *mapping.GUARDS,
    *unfenced.GUARDS,
    *values.GUARDS,
    *ledger.GUARDS,
    *following.GUARDS,
    *liveness.GUARDS,
    *faces.GUARDS,
)
