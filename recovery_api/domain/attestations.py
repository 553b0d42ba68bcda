"""What people attest before a plan is applied: facts that no reading of an end can show, recorded with who and when."""

from __future__ import annotations

LATER_EVENTS_CONFIRMED = "later-events-confirmed"
"""What a person attests to apply a plan whose condition `order` does not hold."""
