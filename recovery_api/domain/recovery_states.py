"""The states of a recovery, by name. Which may follow which, its strategy says; the table's states are the model's."""

from __future__ import annotations

REQUESTED, CLAIMING, ARMING, STAGING, FIRING, READING, APPENDING, VERIFYING, HANDING_OVER, SETTLING, FINISHED = (
    "requested",
    "claiming",
    "arming",
    "staging",
    "firing",
    "reading",
    "appending",
    "verifying",
    "handing_over",
    "settling",
    "finished",
)
UNFINISHED = (REQUESTED, CLAIMING, ARMING, STAGING, FIRING, READING, APPENDING, VERIFYING, HANDING_OVER, SETTLING)
