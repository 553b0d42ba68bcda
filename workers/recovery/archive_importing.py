"""The archive_import intent: files of another archive, read, counted, and kept as parts of the pipeline's.

The law: recognised, ignored and rejected lines add up to the lines that were read, and the answer says so of each file. What
is taken serves a recovery by its digest alone, as what an audit wrote does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recovery_api.domain.archives import Part
from recovery_api.domain.errors import BadInput
from recovery_api.domain.ledger.blocks import coordinate_after
from recovery_api.models import Intent
from recovery_api.selectors.archives import archive_url, incarnations_seen, source_mapping
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.ends import source_spelling
from recovery_api.services.archives import archive_register
from workers.connectors.folders import folder_resolve
from workers.connectors.sources.archive_files import file_source
from workers.evidence.archive.writing import parts_write
from workers.evidence.files import SpellingSigns, events_read
from workers.recovery.archiving import archive_discard


def archive_import(intent: Intent, report: Any) -> None:
    """Reads the intent's files, keeps what they hold of lanes that the source has, and ends the intent.

    Raises: AccessDenied for a file outside the folders that may be read; NotFound; BadFile; BadInput for a lane that the
    source does not have.
    """
    assert intent.pipeline is not None
    parts: list[Part] = []
    files: list[dict[str, Any]] = []
    try:
        for name in intent.arguments["files"]:
            report(step="reading the files", done=len(files), total=len(intent.arguments["files"]), unit="files")
            files.append(_account(Path(name)))
            parts += _parts(intent, Path(name))
        archive_register(intent, parts, files, now_get())
    except BaseException:
        archive_discard(parts)
        raise


def _account(path: Path) -> dict[str, Any]:
    """Where every line of the file went."""
    notes = events_read(folder_resolve(str(path.parent)) / path.name, SpellingSigns(), path.name).notes
    return {"file": path.name, "says": notes.account(), "unread": list(notes.unread()), **notes.as_row()}


def _parts(intent: Intent, path: Path) -> list[Part]:
    pipeline = intent.pipeline
    assert pipeline is not None
    incarnations, mapping = incarnations_seen(pipeline), source_mapping(pipeline.source)
    source = file_source(path, source_spelling(pipeline.source))
    parts: list[Part] = []
    with source.hold_snapshot() as reading:
        for lane in reading.lanes.values():
            if lane.lowest is None or lane.head is None:
                continue
            if lane.lane not in incarnations:
                raise BadInput(
                    path.name, f"has lane {lane.lane!r}, which the source has not", "Give each event its lane."
                )
            made = Part(
                lane.lane,
                lane.lowest,
                coordinate_after(lane.head),
                *(0, 0, "", "", ""),
                incarnations[lane.lane],
                mapping,
            )
            rows = max(lane.estimated_rows, 1)
            parts += parts_write(source, reading, made, archive_url(pipeline.pk), rows, 2**62)
    return parts
