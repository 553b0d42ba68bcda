"""A copy of state beside the history that it is made from: what each key holds at the sink, and what it should hold at f.

`Src(base, history, f)` gives each key the content of its latest event at or below f; a delete gives absence; the base shows
through only for keys without an event there. The law: this is a question of its own. Nothing of it is concluded from the
ledger's verdict, and nothing of the ledger's from it (Theorem 11).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

from recovery_api.domain.coordinates import Coordinate, Spelling
from recovery_api.domain.counts import number_says
from recovery_api.domain.outcomes import OUTCOMES, ImageStatus
from recovery_api.domain.words import row_make

KEY_ORDER = "keys_commit_in_order"
"""The source's option: its owner's word that the events of one key are committed in the order of their coordinates."""

SAMPLED = 20
"""So many keys are named for each word; all of them lie with the evidence."""


KEY_CHARACTERS = 200
"""A key is named by so many of its characters at most."""


class ImageWord(StrEnum):
    """What is told of one key. A row: the word, what it means, what to do. `is_unknown`: it is no difference, and no
    equality."""

    means: str
    remedy: str
    is_unknown: bool

    def __new__(cls, word: str, means: str = "", remedy: str = "", is_unknown: bool = False) -> ImageWord:
        return row_make(cls, word, means=means, remedy=remedy, is_unknown=is_unknown)

    MISMATCHED = (
        "mismatched",
        "The target holds the key with other content than its latest event at or below the frontier.",
        "Look whether that event was accepted; if it was, somebody changed the target by hand.",
    )
    MISSING = (
        "missing",
        "The history says that the key is there; the target does not hold it.",
        "Look whether its latest event was accepted; if it was, somebody deleted the row.",
    )
    EXTRA = (
        "extra",
        "The target holds the key; by the history it was deleted, or never written.",
        "Look whether its deletion was accepted; if it was, or there is none, somebody put the row there.",
    )
    LATER = (
        "later event accepted",
        "An event above the frontier was accepted for the key, so the target may rightly hold other content.",
        "Compare again: the next comparison stands at a higher frontier.",
        True,
    )
    UNTOLD = (
        "history not whole",
        "Nothing that is kept of the history tells what the key should hold.",
        "Archive the pipeline, or keep a base while the history is whole.",
        True,
    )
    TIED = (
        "two events at one coordinate",
        "Two events of the key lie at its highest coordinate, with different contents.",
        "Map a coordinate that no two events share.",
        True,
    )


DIFFERENCES = tuple(word for word in ImageWord if not word.is_unknown)


class Committed(IntEnum):
    """What is known of one key at f from history and base."""

    UNTOLD = 0
    """No event and no base row, where one may have gone."""
    ABSENT = 1
    """Deleted; or never written, where everything is known."""
    PRESENT = 2
    TIED = 3
    """Two of its latest events contradict each other."""
    PASSED = 4
    """A later event of it, at or below f, was accepted, and the source that drops events does not hold that one any more."""


class Shown(IntEnum):
    """What the sink shows of one key."""

    ABSENT = 0
    SAME = 1
    """With the committed content."""
    OTHER = 2
    """With some other content, or where none is committed."""


def key_judge(committed: Committed, shown: Shown, has_later: bool) -> ImageWord | None:
    """What is told of one key; None: it holds what it should. `has_later`: an event above f was accepted for it.

    >>> key_judge(Committed.PRESENT, Shown.OTHER, False), key_judge(Committed.PRESENT, Shown.OTHER, True).value
    (<ImageWord.MISMATCHED: 'mismatched'>, 'later event accepted')
    >>> key_judge(Committed.ABSENT, Shown.OTHER, False), key_judge(Committed.UNTOLD, Shown.OTHER, False).value
    (<ImageWord.EXTRA: 'extra'>, 'history not whole')
    """
    if has_later:
        return ImageWord.LATER
    match committed:
        case Committed.TIED:
            return ImageWord.TIED
        case Committed.PASSED:
            return ImageWord.UNTOLD
        case Committed.UNTOLD:
            return None if shown is Shown.ABSENT else ImageWord.UNTOLD
        case Committed.ABSENT:
            return None if shown is Shown.ABSENT else ImageWord.EXTRA
    match shown:
        case Shown.SAME:
            return None
        case Shown.ABSENT:
            return ImageWord.MISSING
    return ImageWord.MISMATCHED


def judged_as(committed: Committed, shown: Shown, has_later: bool) -> int:
    """The place of `key_judge`'s word among the words, from 1; 0 for none: what a table of all cases is made of."""
    word = key_judge(committed, shown, has_later)
    return 0 if word is None else 1 + list(ImageWord).index(word)


@dataclass(frozen=True, slots=True)
class ImageCounts:
    """`keys`: every key that either side tells of, or that a later acceptance names; `rows`: how many the target holds.
    `words`: how many are told as what."""

    keys: int = 0
    rows: int = 0
    words: Mapping[str, int] = field(default_factory=dict)

    def of(self, word: ImageWord) -> int:
        return self.words.get(word.value, 0)

    @property
    def different(self) -> int:
        return sum(self.of(word) for word in DIFFERENCES)

    @property
    def unknown(self) -> int:
        return sum(self.of(word) for word in ImageWord if word.is_unknown)


def counts_add(several: Iterable[ImageCounts]) -> ImageCounts:
    """Of disjoint sets of keys.

    >>> counts_add([ImageCounts(2, 2, {"extra": 1}), ImageCounts(1, 0, {"extra": 2})])
    ImageCounts(keys=3, rows=2, words={'extra': 3})
    """
    keys = rows = 0
    words: dict[str, int] = {}
    for one in several:
        keys, rows = keys + one.keys, rows + one.rows
        for word, count in one.words.items():
            words[word] = words.get(word, 0) + count
    return ImageCounts(keys, rows, words)


def order_unknown(spelling: Spelling, is_given: bool) -> str:
    """Why coordinate order need not be each key's commit order, as a sentence; "" where it may be taken for it.

    >>> order_unknown(Spelling.BIGINT, False), order_unknown(Spelling.XID8_BIGINT, True)
    ('', '')
    """
    if is_given or spelling is not Spelling.XID8_BIGINT:
        return ""
    return (
        "Coordinates begin with a transaction's number, and of two transactions that write one key the later starter may "
        "commit first: which of its events is the latest is not known. Where each writer locks the key before it writes "
        f"the event, say so at the source: {KEY_ORDER}=true."
    )


def history_gap(
    lowest: Coordinate | None,
    floor: Coordinate | None,
    first_number: int | None,
    earliest: Coordinate | None,
    archived_to: Coordinate | None = None,
) -> str:
    """Why the history is not whole down to its beginning, as the end of a sentence; "" where it is.

    `lowest`: the source's lowest event; `floor`: what lies below it may have been dropped; `first_number`: where its numbers
    began, where that shows; `earliest`: the lowest event that any audit ever saw. `archived_to`: the archive holds
    everything below it, from the beginning on.

    >>> history_gap(Coordinate(1), None, 1, None), history_gap(None, None, 1, None)
    ('', '')
    >>> history_gap(Coordinate(4), None, 1, None)
    'the oldest event kept is not the first one'
    >>> history_gap(Coordinate(4), Coordinate(4), 1, None, archived_to=Coordinate(4))
    ''
    """
    if archived_to is not None and lowest is not None and archived_to >= lowest:
        return ""
    if lowest is None:
        if floor is None and earliest is None and archived_to is None:
            return ""
        return "the source holds no event any more"
    if earliest is not None and lowest > earliest:
        return "the source dropped events that an audit once saw"
    if first_number is not None:
        return "" if lowest.position <= first_number else "the oldest event kept is not the first one"
    return "" if floor is None else "the source drops old events"


@dataclass(frozen=True, slots=True)
class ImageVerdict:
    """What one comparison came to. `says`: numbers first."""

    status: ImageStatus
    says: str

    @property
    def exit_code(self) -> int:
        return OUTCOMES[self.status].exit_code


def image_conclude(frontier: str, counts: ImageCounts, unread: Iterable[str], givens: Iterable[str]) -> ImageVerdict:
    """The verdict. `unread`: why nothing can be said of any key, a sentence each. A difference that is certain counts
    although other keys are unknown.

    >>> image_conclude("9", ImageCounts(2, 2), [], []).says
    'At 9 the target holds what the history says: 2 keys, none mismatched, missing or extra.'
    >>> image_conclude("9", ImageCounts(3, 2, {"missing": 1, "later event accepted": 1}), [], []).says
    'At 9 1 of 3 keys differs: 0 mismatched, 1 missing, 0 extra. 1 key is unknown (later event accepted: 1).'
    """
    unread, givens = list(unread), list(dict.fromkeys(givens))
    given = f", given {'; and '.join(givens)}" if givens else ""
    if unread:
        return ImageVerdict(ImageStatus.UNKNOWN, f"Unknown. {' '.join(unread)}")
    unknown = ""
    if counts.unknown:
        each = ", ".join(
            f"{word.value}: {counts.of(word):,}" for word in ImageWord if word.is_unknown and counts.of(word)
        )
        unknown = f"{number_says(counts.unknown, 'key is', 'keys are')} unknown ({each})."
    if counts.different:
        three = ", ".join(f"{counts.of(word):,} {word.value}" for word in DIFFERENCES)
        verb = "differs" if counts.different == 1 else "differ"
        keys = number_says(counts.keys, "key", "keys")
        says = f"At {frontier}{given} {counts.different:,} of {keys} {verb}: {three}. {unknown}".strip()
        return ImageVerdict(ImageStatus.MISMATCHED, says)
    if unknown:
        says = f"At {frontier}{given} none of {number_says(counts.keys, 'key', 'keys')} is known to differ. {unknown}"
        return ImageVerdict(ImageStatus.UNKNOWN, says)
    keys = number_says(counts.keys, "key", "keys")
    says = f"At {frontier}{given} the target holds what the history says: {keys}, none mismatched, missing or extra."
    return ImageVerdict(ImageStatus.MISMATCH_FREE_GIVEN if givens else ImageStatus.MISMATCH_FREE, says)
