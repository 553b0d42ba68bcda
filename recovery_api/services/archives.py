"""The archive's rows: written in the transaction that records the audit; told to be gone when their time is over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import transaction

from recovery_api.domain.actors import subject
from recovery_api.domain.archives import Part
from recovery_api.domain.errors import BadInput, Refused
from recovery_api.domain.evidence_places import uri_of, url_split
from recovery_api.domain.pipelines import pipeline_options_parse
from recovery_api.models import ArchivePart, Audit, EventKind, Intent, IntentAction, Pipeline
from recovery_api.selectors.archives import (
    archive_folder,
    archive_token,
    incarnations_seen,
    is_at_hand,
    parts_expired,
    place_url,
)
from recovery_api.services.blocks import blocks_forget
from recovery_api.services.events import event_append
from recovery_api.services.intents import intent_create, intent_finish

EXPIRED = "its time was over, and no open item needed it"
AT_ONCE = 100
"""Files that one sweep deletes of a pipeline."""


def archive_record(pipeline: Pipeline, audit: Audit, parts: Iterable[Part], token: int, now: datetime) -> bool:
    """Adds what `audit` wrote; whether it did: where another audit's parts came in since `token`, these are not needed.

    Called in the transaction that records the audit.
    """
    with transaction.atomic():
        locked = Pipeline.objects.select_for_update(no_key=True).get(pk=pipeline.pk)
        if archive_token(locked) != token:
            return False
        ArchivePart.objects.bulk_create(_row(locked, part, now, audit=audit) for part in parts)
    return True


def archive_expire(now: datetime, delete: Callable[[str, str, int], None]) -> int:
    """How many files went because their time was over. `delete` takes one away, by place, name and size; that it is away already is
    no error.

    What an open item needs stays, for as long as it does. Raises: what `delete` raises where a file cannot be deleted; its
    row stays.
    """
    count = 0
    for pipeline_id, place in parts_expired(now).order_by().values_list("pipeline", "place").distinct():
        with transaction.atomic():
            Pipeline.objects.select_for_update(no_key=True).get(pk=pipeline_id)  # no item is opened meanwhile
            for row in parts_expired(now).filter(pipeline=pipeline_id, place=place)[:AT_ONCE]:
                if not is_at_hand(url := place_url(row)):
                    break
                delete(url, row.file, row.bytes)
                row.gone_at, row.gone_because = now, EXPIRED
                row.save(update_fields=["gone_at", "gone_because"])
                count += 1
    return count


def archive_joined(rows: Sequence[ArchivePart], part: Part | None, now: datetime) -> bool:
    """Records that the files of `rows`, all of one pipeline, became the one of `part`; None: they stay as they are. Whether it
    did: False where one of them went, or was joined, meanwhile.

    The newest row becomes the joined part's and the others go, so that an audit at work does not take it for another's.
    """
    newest = max(rows, key=lambda row: row.pk)
    others = [row.pk for row in rows if row.pk != newest.pk]
    with transaction.atomic():
        locked = Pipeline.objects.select_for_update(no_key=True).get(pk=newest.pipeline_id)
        mine = ArchivePart.objects.filter(pk__in=[row.pk for row in rows], gone_at__isnull=True, joined_at__isnull=True)
        if mine.count() != len(rows):
            return False
        if part is None:
            mine.update(joined_at=now)
            return True
        made = _row(locked, part, now, audit=newest.audit)
        made.pk, made.written_at, made.joined_at = newest.pk, newest.written_at, now
        made.expires_at = max(row.expires_at for row in rows)
        ArchivePart.objects.filter(pk__in=others).delete()
        made.save(force_update=True)
    return True


def archive_import_request(
    pipeline: Pipeline, files: Sequence[str], *, actor: str, now: datetime, wake: bool = True
) -> Intent:
    """An intent to read `files` (absolute paths that the worker sees) and register what they hold.

    They are taken to be of the source as the newest audit saw it: that is the actor's word. Raises: BadInput; Refused where
    no audit saw which server, timeline and table the source is.
    """
    if not files or any(not Path(one).is_absolute() for one in files):
        raise BadInput("files", "are not absolute paths", "Name each file from the root on, as the worker sees it.")
    if not incarnations_seen(pipeline):
        remedy = f"Run manage.py audit {pipeline.name} first."
        raise Refused("Registering files", "no audit saw which server, timeline and table the source is", remedy)
    arguments = {"files": list(files)}
    return intent_create(
        IntentAction.ARCHIVE_IMPORT, actor=actor, now=now, pipeline=pipeline, arguments=arguments, wake=wake
    )


def archive_register(intent: Intent, parts: Sequence[Part], files: Sequence[Mapping[str, Any]], now: datetime) -> None:
    """Adds what was read of a person's files, and ends the intent with it: of each file where every line went.

    The next audit reads everything: what was gone may be had now. Raises: Refused where the intent is no longer ours.
    """
    assert intent.pipeline is not None
    with transaction.atomic():
        locked = Pipeline.objects.select_for_update(no_key=True).get(pk=intent.pipeline.pk)
        rows = [_row(locked, part, now, registered_by=intent.created_by) for part in parts]
        ArchivePart.objects.bulk_create(rows)
        blocks_forget(Pipeline.objects.filter(pk=locked.pk))
        events = sum(part.rows for part in parts)
        says = f"{subject(intent.created_by)} registered {events:,} events of {len(files)} files in the archive."
        data = {"files": [dict(one) for one in files], "events": str(events)}
        kind = EventKind.ARCHIVE_REGISTERED
        event_append(kind, actor=intent.created_by, now=now, says=says, pipeline=locked, data=data)
        intent_finish(intent, {"files": data["files"], "events": str(events), "says": says}, now)


def _row(
    pipeline: Pipeline, part: Part, now: datetime, *, audit: Audit | None = None, registered_by: str = ""
) -> ArchivePart:
    place, name = url_split(part.file)
    return ArchivePart(
        pipeline=pipeline,
        lane=part.lane,
        low_position=None if part.low is None else part.low.position,
        low_ordinal=None if part.low is None else part.low.ordinal,
        high_position=part.high.position,
        high_ordinal=part.high.ordinal,
        rows=part.rows,
        bytes=part.bytes,
        digest=part.digest,
        file=name,
        place="" if place == str(archive_folder(pipeline.pk)) else uri_of(place),
        file_digest=part.file_digest,
        incarnation=part.incarnation,
        mapping=part.mapping,
        read_to="" if part.read_to is None else str(part.read_to),
        audit=audit,
        registered_by=registered_by,
        written_at=now,
        expires_at=now + timedelta(days=pipeline_options_parse(pipeline.options)["archive_days"]),
    )
