"""What a pipeline needs to be audited and recovered, point by point: there, lacking, or not known.

The law: a point that could not be looked at is *not known*, never *there*; a lack says what to do about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from recovery_api.domain.outcomes import EXIT_DONE, EXIT_OWED, EXIT_UNKNOWN


@dataclass(frozen=True, slots=True)
class Checked:
    """One point. `holds` None: not known. `remedy`: what to do where it does not hold. `is_advice`: a recovery works without
    it; it is told, and makes no exit code."""

    name: str
    holds: bool | None
    says: str
    remedy: str = ""
    is_advice: bool = False

    @property
    def word(self) -> str:
        """
        >>> Checked("x", None, "").word, Checked("x", False, "", is_advice=True).word
        ('not known', 'advice')
        """
        if self.holds:
            return "ok"
        if self.is_advice:
            return "advice"
        return "not known" if self.holds is None else "lacks"

    def as_row(self) -> dict[str, Any]:
        return {"check": self.name, "word": self.word, "holds": self.holds, "says": self.says, "remedy": self.remedy}


def exit_code(checks: Iterable[Checked]) -> int:
    """0: nothing lacks; 1: something does; 3: something could not be looked at.

    >>> exit_code([Checked("a", True, ""), Checked("b", None, "")]), exit_code([Checked("c", False, "", is_advice=True)])
    (3, 0)
    """
    counting = [one.holds for one in checks if not one.is_advice]
    if False in counting:
        return EXIT_OWED
    return EXIT_UNKNOWN if None in counting else EXIT_DONE


def lines(about: str, checks: Sequence[Checked]) -> list[str]:
    """For a person: what lacks with its remedy, what is well in a line each."""
    found = [f"{about}:"]
    for one in checks:
        found.append(f"  [{one.word}] {one.name}: {one.says}")
        if not one.holds and one.remedy:
            found.append(f"      {one.remedy}")
    return found
