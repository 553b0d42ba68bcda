"""How somebody said that a file is to be read, and how it was found to be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from recovery_api.domain.errors import BadInput
from workers.evidence.files.messages import kcat_pattern

FIELDS = (
    *("coordinate", "lane", "op", "key", "value", "value_text", "digest"),
    *("event_id", "head", "generation", "entry"),
)
FORMATS = ("auto", "jsonl", "csv", "copy", "psql", "parquet", "console", "kcat")
PLACEHOLDER = "__debezium_unavailable_value"
TYPES = ("json", "text", "bytes", "decimal", "millis", "micros", "nanos", "date", "timestamp")


@dataclass(frozen=True)
class ReadOptions:
    """`maps`: field to path. `types`: member of the content to type, as declared. `columns`: of a file without a header.

    `format` is one of FORMATS, or `kcat:` and the format string that was given to kcat. `null`: the text of an unquoted
    cell that stands for null; None: an empty one, `NULL` and `\\N`. `tables`: which of several, together one history, as the leaves
    of a partitioned table are; `*` stands for any text. `placeholder`: what
    stands for a value that the log did not hold. `is_record`: an acceptance record, in which a second reading of a row is a
    second entry. `by_event_id`: entries are matched by their event id, so that a record needs no coordinate and no content.
    `cell_maps`: a table preset's, where the file holds a table's rows. `prefixes`: whose logical decoding messages are events.
    `is_untied_committed`: those that no transaction wrote are committed events, somebody says.
    """

    format: str = "auto"
    preset: str | None = None
    maps: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    null: str | None = None
    columns: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    placeholder: str = PLACEHOLDER
    is_record: bool = False
    by_event_id: bool = False
    needs_contents: bool = True
    cell_maps: Mapping[str, str] = field(default_factory=dict)
    prefixes: tuple[str, ...] = ()
    is_untied_committed: bool = False

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.maps) - set(FIELDS)):
            raise BadInput("--map", f"{unknown[0]!r} is not a field", f"Known: {', '.join(FIELDS)}.")
        if self.format not in FORMATS and not self.format.startswith("kcat:"):
            raise BadInput("--format", f"{self.format!r} is not known", f"Known: {', '.join(FORMATS)}, kcat:FORMAT.")
        if self.format.startswith("kcat:"):
            try:
                kcat_pattern(self.format.partition(":")[2])
            except ValueError as error:
                remedy = "Known: %t %p %o %k %K %s %S %T %h, each once; it ends in \\n. kcat -J needs no format."
                raise BadInput("--format", f"{self.format} cannot be read back ({error})", remedy) from error
        for member, kind in self.types.items():
            word, _, detail = kind.partition(":")
            if word not in TYPES or (word == "decimal" and detail and not detail.isdigit()):
                raise BadInput("--type", f"{member}={kind} is not known", f"Known: {', '.join(TYPES)}, decimal:SCALE.")

    def is_of(self, table: str) -> bool:
        """Whether an event of this table is one that was asked for.

        >>> leaves = ReadOptions(tables=("outbox_2026_*",))
        >>> leaves.is_of("public.outbox_2026_02"), leaves.is_of("public.outbox"), ReadOptions().is_of("public.outbox")
        (True, False, True)
        """
        names = (table, table.rpartition(".")[2])
        return not self.tables or any(_fits(name, wanted) for name in names for wanted in self.tables)


def _fits(name: str, wanted: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, wanted.split("*"))), name, re.DOTALL) is not None


@dataclass(frozen=True)
class Reading:
    """What a file is taken for. `container`: how records lie in it; `shape`: what a record is; `says`: a sentence."""

    container: str
    shape: str
    delimiter: str = ","
    kcat: str | None = None
    says: str = ""
