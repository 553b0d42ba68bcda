"""docs/presets.md, made from the preset files: `python -m recovery_api.presets.page` prints it."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from recovery_api.presets import Answer, Column, Preset, preset_get, preset_names

INTRODUCTION = """# Presets

Made from the files in `recovery_api/presets` by `make presets`; a test compares. Each file holds what a well-known library
makes of its table (columns, types and keys, with the place they were read in), the options that map it, and what an audit
may say of it. Its test makes that table in a real PostgreSQL and fills it: two rows in one transaction, two that commit
out of the order of their numbers, a rollback, a row with nulls. It delivers from it as the library does, marks or deletes
what was sent, and audits.

    manage.py sources presets               # the list
    manage.py sources presets marten        # one, whole
    manage.py sources add shop --preset marten --option connection=env:FENCEPOST_END_SHOP

A preset fills the options that you leave out; what you give wins, and what was filled is shown. Pages and REST (`preset`)
do the same. A preset promises nothing by itself: what an end can do is what its test shows. Where the coordinate is a
number that the database draws, the frontier rests on a grace, and the verdict is *exactly once at f, given …*; with
`--option share_lock=true`, and rights as README has them, it can be proven. The tests' tables belong to a superuser and
nobody else may write them; what your logins' rights allow, your source's test says.
"""

ANSWERS = {
    Answer.AUDITS: "audits as it is",
    Answer.AFTER_A_COLUMN: "audits once an ordered column was added",
    Answer.OF_WHAT_IS_KEPT: "nothing owed of what is kept, at best",
    Answer.REFUSED: "refused",
}

STATUSES = {
    "owed": "owed",
    "unknown": "unknown",
    "complete_by_identity": "complete by identity at f",
    "nothing_owed_of_kept": "nothing owed of what is kept at f",
    "exactly_once": "exactly once at f",
    "exactly_once_given": "exactly once at f, given a grace",
}


def page() -> str:
    """The whole document."""
    presets = sorted((preset_get(name) for name in preset_names()), key=lambda one: (one.end, one.name))
    rows = [
        f"| `{one.name}` | {one.library} | {one.end} | {ANSWERS[one.answer]} | {_ordered(one)} |" for one in presets
    ]
    head = ["| preset | library | end | an audit | ordered by |", "|---|---|---|---|---|"]
    return "\n".join([INTRODUCTION, *head, *rows, "", *(line for one in presets for line in _section(one))])


def _section(preset: Preset) -> Iterable[str]:
    yield f"## {preset.library}"
    yield ""
    yield f"`--preset {preset.name}`. {_sentence(preset.says)}"
    yield ""
    yield f"**What an audit may say.** {preset.may_say}"
    if preset.advice:
        yield ""
        yield f"**Mind.** {preset.advice}"
    yield ""
    yield f"**After a delivery.** {preset.delivered.says} {preset.delivered.also}".rstrip()
    if preset.example is not None:
        yield ""
        yield f"**Its test.** {_test_says(preset)}"
    if preset.options:
        filled = ", ".join(f"`{name}={_written(value)}`" for name, value in preset.options.items())
        yield ""
        yield f"**Filled.** {filled}"
    yield ""
    yield f"**{preset.table.schema}.{preset.table.name}**{' (an example; the name is yours)' * preset.table.is_named_by_user}"
    yield ""
    yield "| column | type | null | default |"
    yield "|---|---|---|---|"
    yield from (_column(column) for column in preset.columns)
    yield ""
    keys = [f"primary key ({', '.join(preset.table.primary_key)})"] if preset.table.primary_key else []
    keys += [f"unique ({', '.join(columns)})" for columns in preset.table.unique]
    if keys:
        yield f"Keys: {'; '.join(keys)}."
    files = ", ".join(f"`{file}`" for file in preset.documented.files)
    also = "".join(f"; {address}" for address in preset.documented.also)
    yield f"From {preset.documented.repository} at {preset.documented.version}: {files}{also}."
    yield ""


def _test_says(preset: Preset) -> str:
    assert preset.example is not None
    says = "With one event passed over and one not sent yet: "
    says += "owed, 2 lost. " if preset.example.owed == "owed" else f"{STATUSES[preset.example.owed]}. "
    says += f"After both were delivered: {STATUSES[preset.example.complete]}."
    if preset.example.share_lock:
        says += f" Under the share lock: {STATUSES[preset.example.share_lock]}."
    return says


def _column(column: Column) -> str:
    default = f"`{column.default}`" if column.default and column.default != "identity" else column.default
    return f"| `{column.name}` | {column.type} | {'yes' if column.null else 'no'} | {default} |"


def _ordered(preset: Preset) -> str:
    if preset.answer is Answer.REFUSED:
        return ""
    names = ", ".join(f"`{name}`" for name in preset.options.get("coordinate", ()))
    return f"{names} (to be added)" if preset.added else names


def _written(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _sentence(text: str) -> str:
    """As a sentence; a table's name stays as it is spelled."""
    return f"{'It' + text[2:] if text.startswith('it ') else text}".rstrip(".") + "."


if __name__ == "__main__":
    sys.stdout.write(page())
