"""What a safe frontier rests on: shown, an owner's word, or a grace (THEORY sections 1 and 3, P3).

The law: only a proven ground lets a verdict say *exactly once at f*. On every other ground the same counts say
*exactly once at f, given …*, with what was given named.
"""

from __future__ import annotations

from enum import StrEnum


class Standing(StrEnum):
    """How much of the ground is known."""

    PROVEN = "proven"
    """Nobody but a superuser can make it false, as the catalogue showed before and after the reading."""
    ATTESTED = "attested"
    """Somebody who answers for the source said so; who and when is recorded."""
    ASSUMED = "assumed"
    """A grace: older transactions are taken to have ended, or not to have drawn a coordinate."""
