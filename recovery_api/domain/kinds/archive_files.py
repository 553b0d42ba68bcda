"""A folder of files as a committed history: what an archive job wrote, Parquet, CSV or JSON lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recovery_api.domain.abilities import Ability
from recovery_api.domain.coordinates import Spelling
from recovery_api.domain.errors import BadInput
from recovery_api.domain.kinds.base import Kind, Option, Retention
from recovery_api.domain.kinds.horizons import SOURCE_HORIZONS, horizons_check


def check(options: Mapping[str, Any]) -> None:
    """Raises: BadInput for a pattern that leads out of the folder."""
    horizons_check("archive_files", options)
    if "/" in options["pattern"] or "\x00" in options["pattern"]:
        raise BadInput(
            "archive_files.pattern", f"{options['pattern']!r} is no file's name", "Name files of the folder: *.parquet."
        )


def spelling_of(options: Mapping[str, Any]) -> Spelling:
    return Spelling(options["coordinate_spelling"])


def retention_of(options: Mapping[str, Any]) -> Retention:
    return Retention(options["retention"])


KIND = Kind(
    name="archive_files",
    end="source",
    label="Files of an archive",
    says="A folder that an archive job writes a committed history to, as Parquet, CSV or JSON lines. Only ever read.",
    options=(
        Option(
            "folder",
            "The folder, as an absolute path, below one that FENCEPOST_ARCHIVE_FOLDERS names where the worker and Spark run;"
            " Spark's executors must see it, too.",
            is_required=True,
        ),
        Option(
            "pattern", "Which of its files are read, by name: *.parquet. Hidden files and links are not.", default="*"
        ),
        Option(
            "coordinate_spelling",
            "What the coordinates in the files are: bigint, unsigned, pg_lsn, xid8_bigint.",
            type="choice",
            default=Spelling.BIGINT.value,
            choices=tuple(spelling.value for spelling in Spelling),
        ),
        Option(
            "lane_from",
            "column: the files' own lane column, one lane without it. file: a file's name up to its first dot is its lane.",
            type="choice",
            default="column",
            choices=("column", "file"),
        ),
        Option(
            "is_written_in_order",
            "Your word, recorded with your name, that whatever is still to be written lies above what is there, lane by lane,"
            " and that a file is put there whole.",
            type="boolean",
            default=False,
            is_word=True,
        ),
        Option(
            "retention",
            "keeps: no file is ever taken away. purges: old files go, and what is below the oldest event is unknown.",
            type="choice",
            default=Retention.KEEPS.value,
            choices=(Retention.KEEPS.value, Retention.PURGES.value),
        ),
        *SOURCE_HORIZONS,
    ),
    abilities=frozenset({Ability.IMMUTABLE_BELOW}),
    connector="workers.connectors.sources.archive_files.ArchiveFiles",
    check=check,
    spelling=spelling_of,
    retention=retention_of,
    example={"folder": "/var/archive/orders", "pattern": "*.parquet", "is_written_in_order": True},
    shows=(
        "Whether the folder may be read, and that every line of its files is an event.",
        "How many files and events there are, and from which coordinate to which, lane by lane.",
    ),
)
