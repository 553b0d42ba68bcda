"""The kernel's counts, from which a verdict is made: names and sums, no judgement."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class LaneCounts:
    """What the kernel counted in one lane, all blocks together.

    *retained*: over the history at or above the floor; *journal*: over everything committed; `lost`: in either. `lost_hidden`: retained
    obligations whose coordinate the sink holds with another payload. `acknowledged`: lost events taken out of the
    obligation on purpose, in either grade. `duplicate_copies`: entries beyond the first of each repeated payload.
    `justification_unknown`: entries that nothing here can justify, below the floor or where rows go. `rows_by_coordinate`: rows judged by
    coordinate alone.

    Of what earlier audits saw: `justified_earlier`: entries whose commit they saw, and whose row is gone.
    `lost_remembered`: lost events that the source does not hold any more, `acknowledged_remembered` of them
    acknowledged, `lost_archived` of them with their content in the archive. `unjudged_remembered`: open ones that could not be judged as the pipeline is registered now.

    Of a record that knows only ids: `absent_trimmed`, `absent_untimed`, `absent_unreadable`: obligations without an
    entry, of which nothing shows whether they were accepted (the row may be gone; the commit time is not known; ids that
    cannot be read may be theirs), `absent_acknowledged` of them acknowledged. `ids_missing`: obligations without an id
    that a record could hold. `ids_unreadable`: entries whose id cannot be the source's type. `ids_unmatched`: entries
    whose id the source does not hold.
    """

    history_rows: int = 0
    journal_rows: int = 0
    accepted_rows: int = 0
    obligations_retained: int = 0
    obligations_journal: int = 0
    lost: int = 0
    lost_retained: int = 0
    lost_journal: int = 0
    lost_hidden: int = 0
    floor_uncovered: int = 0
    acknowledged: int = 0
    acknowledged_retained: int = 0
    premature_never_committed: int = 0
    premature_altered: int = 0
    premature_ahead: int = 0
    premature_head_not_believed: int = 0
    justification_unknown: int = 0
    duplicate_payloads: int = 0
    duplicate_copies: int = 0
    justified_earlier: int = 0
    lost_remembered: int = 0
    acknowledged_remembered: int = 0
    lost_archived: int = 0
    unjudged_remembered: int = 0
    rows_by_coordinate: int = 0
    coordinates_repeated: int = 0
    coordinates_ascending: bool = True
    absent_trimmed: int = 0
    absent_untimed: int = 0
    absent_unreadable: int = 0
    absent_acknowledged: int = 0
    ids_missing: int = 0
    ids_unreadable: int = 0
    ids_unmatched: int = 0

    @property
    def premature(self) -> int:
        return (
            self.premature_never_committed
            + self.premature_altered
            + self.premature_ahead
            + self.premature_head_not_believed
        )

    @property
    def lost_of(self) -> tuple[int, int]:
        """(lost, obligations) of the grade, retained or journal, in which more events are lost."""
        return max((self.lost_journal, self.obligations_journal), (self.lost_retained, self.obligations_retained))

    @property
    def absent_unknown(self) -> int:
        """Obligations without an entry of which nothing shows whether they were accepted."""
        return self.absent_trimmed + self.absent_untimed + self.absent_unreadable

    @property
    def is_judged(self) -> bool:
        """Whether any event in scope lies at or below f, or anything wrong was found: otherwise nothing was judged."""
        return bool(self.obligations_retained or self.obligations_journal or not self.is_hazard_free)

    @property
    def is_hazard_free(self) -> bool:
        return self.premature == 0 and self.duplicate_payloads == 0

    @property
    def is_keyed_sound(self) -> bool:
        """Matching by coordinate alone gives the same delta: P4 holds and every entry meets a committed coordinate."""
        return self.coordinates_ascending and self.premature == 0 and self.justification_unknown == 0


def counts_sum(counts: Iterable[LaneCounts]) -> LaneCounts:
    """All lanes together. Coordinates ascend where they do in each."""
    every = list(counts)
    numbers = [one.name for one in fields(LaneCounts) if one.name != "coordinates_ascending"]
    return LaneCounts(
        **{name: sum(getattr(one, name) for one in every) for name in numbers},
        coordinates_ascending=all(one.coordinates_ascending for one in every),
    )


def number_says(count: int, one: str, many: str) -> str:
    """A count with its noun.

    >>> number_says(1, "event", "events"), number_says(1200, "event", "events")
    ('1 event', '1,200 events')
    """
    return f"{count:,} {one if count == 1 else many}"
