"""docs/kinds.md's table, made from what the kinds declare: `python -m recovery_api.domain.kinds.page FILE` writes it anew."""

from __future__ import annotations

import sys
from pathlib import Path

from recovery_api.domain.abilities import DELIVERIES, RECORDS, Ability
from recovery_api.domain.kinds.base import KINDS, Kind, kind_get
from recovery_api.domain.outcomes import OUTCOMES, Status
from recovery_api.domain.strategies import STRATEGIES

BEGIN, END = "<!-- made by `make kinds` -->\n", "<!-- end of what is made -->\n"

READ = {
    Ability.JOINED_SNAPSHOT: (
        "read in one snapshot, which other processes join",
        "a safe frontier: proven where the snapshot or a lock shows it, else attested or assumed, and said",
        "as long as the rows are kept; below the oldest one that is left, unknown",
    ),
    Ability.IMMUTABLE_BELOW: (
        "immutable below a frontier, which reading count and digest again shows",
        "a safe frontier, attested by its owner or assumed, and said; what changes below it while it is read makes it unknown",
        "as long as what was written is kept; below the oldest event that is left, unknown",
    ),
}
"""By how a source is read: the words, what may be promised of it, and until when."""

ALONE = "read_only"

ANSWERS = {
    Ability.RECORD_BY_RANGE: "answers by range of coordinates",
    Ability.RECORD_BY_SCAN: "knows only message ids, and is read whole, in shares",
}

BY_IDENTITY = (
    f"It is audited and planned for, and nothing is sent there: at best {OUTCOMES[Status.COMPLETE_BY_IDENTITY].words}.",
    "as long as an id's row lives, as its owner says; for good where rows are said never to go",
)

DRIVEN = {
    Ability.FENCED: ("fenced", "for good: the identity key keeps every accepted coordinate"),
    Ability.APPENDED: ("attested", "as long as the rows are kept and nobody changes them"),
}
"""By how a delivery is made: the strategy that drives it, and until when what it says can be shown."""

DELIVERY_ALONE = (
    "Its pipeline is audited and planned for by a record of another end, and nothing is fired into it:"
    " nothing beyond what an audit finds.",
    "as long as that record's rows are kept",
)


def table() -> str:
    """Markdown: one row a kind and way to use it."""
    ours = [name for name, module in KINDS.items() if module.startswith(__package__ or "")]
    rows = [row for name in ours for row in kind_rows(kind_get(name))]
    head = ("Kind", "End", "What it can", "What may be promised", "Until when")
    lines = ["| " + " | ".join(row) + " |" for row in (head, ("---",) * len(head), *rows)]
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """`text` with the table between its two marks made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{table()}{END}{after}"


def kind_rows(kind: Kind) -> list[tuple[str, ...]]:
    """One row for each way in which the kind can be used, from the abilities that it declares."""
    name = f"`{kind.name}`"
    if kind.end == "source":
        found = [READ[ability] for ability in READ if ability in kind.abilities]
        return [(name, "source", *words) for words in found]
    rows: list[tuple[str, ...]] = []
    if Ability.RECORD_BY_RANGE in kind.abilities and Ability.FENCED not in kind.abilities:
        can = ANSWERS[Ability.RECORD_BY_RANGE]
        rows.append((name, "record", can, STRATEGIES[ALONE].sentence(), "as long as its rows are kept"))
    if Ability.RECORD_BY_SCAN in kind.abilities:
        rows.append((name, "record", ANSWERS[Ability.RECORD_BY_SCAN], *BY_IDENTITY))
    for ability in sorted(kind.abilities & DELIVERIES):
        extra = " and can be drilled" if Ability.DRILLED in kind.abilities else ""
        if not kind.abilities & RECORDS:
            rows.append((name, "delivery", f"{ability.value}{extra}", *DELIVERY_ALONE))
            continue
        strategy, until = DRIVEN[ability]
        until = "until its process ends" if kind.is_in_process else until
        new = " and tells what is new" if Ability.FOLLOWED in kind.abilities else ""
        answers = next(words for record, words in ANSWERS.items() if record in kind.abilities)
        can = f"{answers}{new}; {ability.value}{extra}"
        rows.append((name, "record and delivery", can, STRATEGIES[strategy].sentence(), until))
    return rows


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")
