"""Acknowledging more than one: what would be is shown first, and who confirms it confirms those coordinates alone.

The law: a range or a filter means what the newest standing audit found lost at that moment. Its coordinates are written
down, so that nothing that is found later is acknowledged with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Count, Exists, OuterRef

from recovery_api.domain.actors import subject
from recovery_api.domain.coordinates import Coordinate, coordinate_format
from recovery_api.domain.dead_letters import Export, export_read
from recovery_api.domain.errors import BadInput, Refused
from recovery_api.domain.findings import FindingWord
from recovery_api.domain.omissions import Way, Word, counts_says
from recovery_api.models import (
    AcknowledgedOmission,
    Audit,
    AuditStatus,
    EventKind,
    Finding,
    Intent,
    IntentAction,
    OmissionPreview,
    Pipeline,
    PreviewedOmission,
)
from recovery_api.selectors.ends import source_spelling
from recovery_api.selectors.findings import FindingFilter, finding_list
from recovery_api.selectors.omissions import audit_deciding, preview_get, stands
from recovery_api.services.events import event_append
from recovery_api.services.intents import intent_create
from recovery_api.services.omissions import omissions_end, reason_check, until_check, why

KEPT_FOR = timedelta(days=1)
ACTION = "acknowledging omissions"


def omissions_preview(
    pipeline: Pipeline, asked: FindingFilter, *, actor: str, now: datetime, audit_id: UUID | str | None = None
) -> OmissionPreview:
    """What acknowledging the lost findings of `asked` would do. `audit_id`: the audit whose findings somebody looked at.

    Raises: Refused where no audit stands, another one is newer than `audit_id`, or the listing of findings ends before
    what was asked for.
    """
    with transaction.atomic():
        audit = _deciding(pipeline)
        if audit_id is not None and str(audit.pk) != str(audit_id):
            raise Refused(
                ACTION, "a newer audit stands than the one you looked at", f"Look at its findings: {audit.pk}."
            )
        _listed_check(audit, asked)
        previews_forget(now)
        preview = OmissionPreview.objects.create(
            pipeline=pipeline,
            audit=audit,
            way=Way.FILTER,
            asked=_asked(pipeline, asked),
            created_by=actor,
            created_at=now,
        )
        found = finding_list(audit, asked).filter(finding=FindingWord.LOST).order_by()
        rows, parameters = found.values("lane", "position", "ordinal").distinct().query.sql_with_params()
        with connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO {_table(PreviewedOmission)} (preview_id, lane, position, ordinal, event_id, word, payload)"  # nosec B608
                f" SELECT %s, lane, position, ordinal, '', %s, '' FROM ({rows}) AS lost",
                [preview.pk, Word.OWED.value, *parameters],
            )
        _acknowledged_tell(preview)
        preview.counts = places_count(preview)
        preview.save(update_fields=["counts"])
    return preview


def export_preview(
    pipeline: Pipeline, text: str, *, actor: str, now: datetime, wake: bool = True
) -> tuple[OmissionPreview, Intent]:
    """What acknowledging the events of a dead-letter export would do, once a worker looked them up, and the intent that asks
    for that: only the source says which event has an id, and what was ever committed.

    Raises: BadInput; Refused where no audit stands.
    """
    export = export_read(text, source_spelling(pipeline.source))
    if not export.named:
        raise BadInput("content", f"names no event in {export.lines_read:,} lines", _rejected_says(export))
    with transaction.atomic():
        audit = _deciding(pipeline)
        previews_forget(now)
        preview = OmissionPreview.objects.create(
            pipeline=pipeline, audit=audit, way=Way.EXPORT, asked=export.as_row(), created_by=actor, created_at=now
        )
        _places_copy(
            preview,
            (
                (
                    one.line,
                    one.lane,
                    *_held(one.coordinate),
                    one.event_id,
                    "",
                    one.payload.as_text() if one.payload else "",
                )
                for one in export.named
            ),
        )
        intent = intent_create(
            IntentAction.OMISSION_LOOK_UP,
            actor=actor,
            now=now,
            pipeline=pipeline,
            arguments={"preview": str(preview.pk)},
            wake=wake,
        )
    return preview, intent


Place = tuple[int | None, str, int | None, int | None, str, str, str]
"""Line, lane, position, ordinal, event id, word, payload."""


def export_looked_up(preview: OmissionPreview, audit: Audit, places: Iterable[Place]) -> dict[str, str]:
    """The counts of a preview whose places a worker looked up, in the caller's transaction: each place with its word."""
    PreviewedOmission.objects.filter(preview=preview).delete()
    _places_copy(preview, places)
    _same_event_tell(preview)
    _acknowledged_tell(preview)
    preview.audit, preview.counts = audit, places_count(preview)
    preview.save(update_fields=["audit", "counts"])
    counts: dict[str, str] = preview.counts
    return counts


def preview_confirm(
    pipeline: Pipeline,
    preview_id: UUID | str,
    *,
    reason: str,
    actor: str,
    now: datetime,
    reference: str = "",
    until: datetime | None = None,
    with_content: bool = False,
) -> int:
    """How many omissions were acknowledged: those that the preview showed as owed. `with_content`: also those that the
    export named by their key and content alone.

    Raises: NotFound; BadInput; Refused where it was confirmed, is still looked up, or no longer says what is owed: some of
    it was accepted since, or the audit that it rests on is void.
    """
    words = [Word.OWED.value, *([Word.BY_CONTENT.value] if with_content else [])]
    reason, reference = reason_check(reason), reference.strip()
    until_check(until)
    preview = preview_get(pipeline, preview_id)
    with transaction.atomic():
        Pipeline.objects.select_for_update(no_key=True).get(pk=pipeline.pk)
        preview.refresh_from_db()
        if preview.confirmed_at is not None:
            raise Refused(ACTION, f"{preview.confirmed_by} confirmed this preview already", "Preview again for more.")
        if preview.counts is None:
            raise Refused(ACTION, "its events are still looked up", "Wait for the worker, then confirm.")
        if not any(int(preview.counts.get(word, 0)) for word in words):
            raise Refused(ACTION, *_nothing_says(preview.counts))
        _still_owed_check(preview, words)
        omissions_end(pipeline)
        count = _acknowledge(preview, words, reason, reference, until, actor, now)
        by_content = AcknowledgedOmission.objects.filter(pipeline=pipeline, act=preview.pk, is_by_content=True).count()
        preview.confirmed_by, preview.confirmed_at = actor, now
        preview.save(update_fields=["confirmed_by", "confirmed_at"])
        PreviewedOmission.objects.filter(preview=preview).delete()
        events = f"{count:,} {'omission' if count == 1 else 'omissions'}"
        alone = f" ({by_content:,} named by key and content alone)" if by_content else ""
        says = f"{subject(actor)} acknowledged {events}{alone} in one act: {why(reason, reference, until)}"
        data = {"act": str(preview.pk), "count": str(count), "way": preview.way, "audit": str(preview.audit_id)}
        data |= {"by_content": str(by_content)} if by_content else {}
        event_append(EventKind.OMISSION_ACKNOWLEDGED, actor=actor, now=now, says=says, pipeline=pipeline, data=data)
    return count


def _nothing_says(counts: Mapping[str, Any]) -> tuple[str, str]:
    """Why nothing is acknowledged, and what to do."""
    if alone := int(counts.get(Word.BY_CONTENT, 0)):
        events = "the 1 lost event" if alone == 1 else f"all {alone:,} lost events"
        remedy = "Say that this is enough (command: --with-content; REST: with_content), or give their coordinates."
        return f"the export names {events} by key and content alone", remedy
    return "nothing of this preview is lost and unacknowledged", "Preview something else."


def _acknowledge(
    preview: OmissionPreview,
    words: list[str],
    reason: str,
    reference: str,
    until: datetime | None,
    actor: str,
    now: datetime,
) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {_table(AcknowledgedOmission)} (pipeline_id, lane, position, ordinal, reason, reference, act,"  # nosec B608
            ' "until", acknowledged_by, acknowledged_at, withdrawn_by, is_by_content)'
            f" SELECT DISTINCT %s::bigint, lane, position, ordinal, %s, %s, %s::uuid, %s::timestamptz, %s,"
            f" %s::timestamptz, '', word = %s FROM {_table(PreviewedOmission)} WHERE preview_id = %s AND word = ANY(%s)"
            " ON CONFLICT (pipeline_id, lane, position, ordinal) WHERE withdrawn_at IS NULL DO NOTHING",
            [
                *(preview.pipeline_id, reason, reference, preview.pk, until, actor, now),
                *(Word.BY_CONTENT.value, preview.pk, words),
            ],
        )
        return int(cursor.rowcount)


def _still_owed_check(preview: OmissionPreview, words: list[str]) -> None:
    """Raises: Refused where the newest audit that stands is another, and it does not show the same to be lost."""
    again = "Preview again."
    audit = _deciding(preview.pipeline)
    if audit.pk == preview.audit_id:
        return
    if audit.status == AuditStatus.UNKNOWN:
        raise Refused(
            ACTION, "a newer audit stands, and it could not tell", f"Run manage.py audit {audit.pipeline.name}."
        )
    if audit.listed_count < audit.evidence_rows:
        raise Refused(ACTION, "a newer audit stands, and not all of its findings are listed", again)
    here = Finding.objects.filter(
        audit=audit,
        finding=FindingWord.LOST,
        lane=OuterRef("lane"),
        position=OuterRef("position"),
        ordinal=OuterRef("ordinal"),
    )
    gone = PreviewedOmission.objects.filter(~Exists(here), preview=preview, word__in=words).count()
    if gone:
        raise Refused(ACTION, f"by a newer audit {gone:,} of these are not lost any more", again)


def _deciding(pipeline: Pipeline) -> Audit:
    """Raises: Refused where no audit stands."""
    audit = audit_deciding(pipeline)
    if audit is None:
        raise Refused(
            ACTION, "no audit stands, so nothing is known to be lost", f"Run manage.py audit {pipeline.name}."
        )
    return audit


def _listed_check(audit: Audit, asked: FindingFilter) -> None:
    """Raises: Refused where findings that `asked` means may lie beyond the end of the listing, which is a beginning of them
    in the order of lane and coordinate."""
    if audit.listed_count >= audit.evidence_rows:
        return
    last = Finding.objects.filter(audit=audit).order_by("-number").first()
    if last is not None and asked.lane:
        is_before = asked.high is not None and asked.high < Coordinate(last.position, last.ordinal)
        if is_before if asked.lane == last.lane else Finding.objects.filter(audit=audit, lane=asked.lane).exists():
            return
    listed = f"{audit.listed_count:,} of {audit.evidence_rows:,} findings are listed"
    if last is None:
        raise Refused(ACTION, listed, f"Run manage.py audit {audit.pipeline.name}.")
    end = coordinate_format(Coordinate(last.position, last.ordinal), source_spelling(audit.pipeline.source))
    raise Refused(ACTION, listed, f"Name lane {last.lane} and a range that ends below {end}, or import a list of them.")


def _same_event_tell(preview: OmissionPreview) -> None:
    """Two lines that name one event, each in another way, are one event: the second goes, counted; before it one that names
    it by key and content alone."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"DELETE FROM {_table(PreviewedOmission)} AS a USING {_table(PreviewedOmission)} AS b"  # nosec B608
            " WHERE a.preview_id = %s AND b.preview_id = a.preview_id AND a.lane = b.lane AND a.position = b.position"
            " AND a.ordinal = b.ordinal AND (a.word = %s, a.line, a.id) > (b.word = %s, b.line, b.id) RETURNING a.line",
            [preview.pk, Word.BY_CONTENT.value, Word.BY_CONTENT.value],
        )
        lines = sorted(line for (line,) in cursor.fetchall() if line is not None)
    preview.asked = {
        **preview.asked,
        "same_event_lines": [str(line) for line in lines[:100]],
        "same_event": str(len(lines)),
    }
    preview.save(update_fields=["asked"])


def _acknowledged_tell(preview: OmissionPreview) -> None:
    standing = AcknowledgedOmission.objects.filter(
        stands(),
        pipeline=preview.pipeline_id,
        lane=OuterRef("lane"),
        position=OuterRef("position"),
        ordinal=OuterRef("ordinal"),
    )
    words = [Word.OWED, Word.BY_CONTENT, Word.UNDECIDED]
    owed = PreviewedOmission.objects.filter(Exists(standing), preview=preview, word__in=words)
    owed.update(word=Word.ALREADY)


def places_count(preview: OmissionPreview) -> dict[str, str]:
    """How many places are of each word, as text."""
    places = PreviewedOmission.objects.filter(preview=preview).order_by()
    counts = dict(places.values_list("word").annotate(Count("id")))
    return {word.value: str(counts[word]) for word in Word if counts.get(word)}


def preview_says(preview: OmissionPreview) -> str:
    """What it would do, and what was not read of an export, in sentences."""
    if preview.counts is None:
        return "A worker looks the events up at the source."
    return " ".join(part for part in (counts_says(preview.counts), export_says(preview.asked)) if part)


def export_says(asked: Mapping[str, Any]) -> str:
    """How the lines of an export add up; empty for a filter."""
    if "lines_read" not in asked:
        return ""
    says = f"{int(asked['lines_read']):,} lines were read: {int(asked['recognised']):,} recognised,"
    says += f" {int(asked['ignored']):,} ignored ({int(asked['repeated']):,} name an event again),"
    says += f" {int(asked['rejected']):,} rejected."
    if same := int(asked.get("same_event", 0)):
        says += f" {same:,} of the recognised name an event that another line names otherwise; it is counted once."
    if unknown := asked["unknown_columns"]:
        says += f" Ignored columns: {', '.join(unknown)}."
    return says


def _places_copy(preview: OmissionPreview, places: Iterable[Place]) -> None:
    columns = "(preview_id, line, lane, position, ordinal, event_id, word, payload)"
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {_table(PreviewedOmission)} {columns} FROM STDIN") as copy,
    ):
        for place in places:
            copy.write_row((preview.pk, *place))


def previews_forget(now: datetime) -> None:
    """What nobody confirmed within a day goes, so that a glance at the counts never turns into an act."""
    OmissionPreview.objects.filter(confirmed_at__isnull=True, created_at__lt=now - KEPT_FOR).delete()


def _asked(pipeline: Pipeline, asked: FindingFilter) -> dict[str, Any]:
    spelling = source_spelling(pipeline.source)
    words = {"finding": asked.finding, "cause": asked.cause, "lane": asked.lane}
    places = {
        name: coordinate_format(place, spelling) for name, place in (("from", asked.low), ("to", asked.high)) if place
    }
    return {name: word for name, word in words.items() if word} | places


def _held(coordinate: Coordinate | None) -> tuple[int | None, int | None]:
    return (None, None) if coordinate is None else (coordinate.position, coordinate.ordinal)


def _rejected_says(export: Export) -> str:
    first = f" Line {export.rejected[0][0]}: {export.rejected[0][1]}" if export.rejected else ""
    return f"{len(export.rejected):,} were rejected.{first}"


def _table(model: type[Any]) -> str:
    return connection.ops.quote_name(model._meta.db_table)
