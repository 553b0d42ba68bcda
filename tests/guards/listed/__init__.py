"""The protections that matter, by area."""

from __future__ import annotations

from tests.guards.guard import Guard
from tests.guards.listed import faces, grounds, identity, kit, liveness, protocol, rights, values, verdicts

GUARDS: tuple[Guard, ...] = (
    *kit.GUARDS,
    *protocol.GUARDS,
    *grounds.GUARDS,
    *verdicts.GUARDS,
    *identity.GUARDS,
    *rights.GUARDS,
    *values.GUARDS,
    *liveness.GUARDS,
    *faces.GUARDS,
)
