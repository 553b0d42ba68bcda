"""Reading one event at both ends: asked for by name, logged, and kept for a short while only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from recovery_api.domain.actors import subject
from recovery_api.domain.coordinates import Coordinate, coordinate_format
from recovery_api.domain.errors import NotFound, Refused
from recovery_api.domain.frontiers import coordinate_as_row
from recovery_api.domain.images import KEY_CHARACTERS
from recovery_api.models import LIVE_STATES, EventContent, EventKind, ImageAudit, Intent, IntentAction, Pipeline
from recovery_api.selectors.ends import source_spelling
from recovery_api.selectors.findings import event_content_get, sink_contents_of
from recovery_api.services.events import event_append
from recovery_api.services.intents import intent_create, intent_finish

KEPT_FOR = timedelta(minutes=30)
CONTENT_LIMIT_BYTES = 64 * 2**20
"""A larger content is counted and digested, and not brought over."""


def event_read_request(
    pipeline: Pipeline, lane: str, coordinate: Coordinate, *, actor: str, now: datetime, wake: bool = True
) -> Intent:
    """An intent to read this event at both ends, content included; the live one where somebody asked already.

    Either way it stands in the timeline that `actor` asked, and to whom that applies the contents are shown.
    """
    arguments = {"lane": lane, **coordinate_as_row(coordinate)}
    with transaction.atomic():
        Pipeline.objects.select_for_update(no_key=True).get(id=pipeline.pk)
        intent = Intent.objects.filter(
            action=IntentAction.EVENT_READ, pipeline=pipeline, arguments=arguments, state__in=LIVE_STATES
        ).first() or intent_create(
            IntentAction.EVENT_READ, actor=actor, now=now, pipeline=pipeline, arguments=arguments, wake=wake
        )
        _log_event(intent, f"{subject(actor)} asked to read the event at", actor, now)
    return intent


def event_content_look(intent: Intent, *, actor: str, now: datetime) -> None:
    """Writes in the timeline that `actor` looks at what somebody else's reading of an event brought.

    Raises: NotFound where nothing of it is kept.
    """
    content = event_content_get(intent.pk)
    if content.intent.action != IntentAction.EVENT_READ:
        raise NotFound(f"The event read by {intent.pk}", "the control database", "Read the event again.")
    says = f"{subject(actor)} looked at what {subject(content.intent.created_by)} had read of the event at"
    _log_event(content.intent, says, actor, now)


def image_value_request(image: ImageAudit, number: int, *, actor: str, now: datetime, wake: bool = True) -> Intent:
    """An intent to read the content of a key that the image audit named, by its place in `sample`, at source and target.

    That `actor` asked stands in the timeline. Raises: NotFound where it named no such key; Refused where its name was cut.
    """
    if not 0 <= number < len(image.sample):
        raise NotFound(f"Key number {number}", f"what image audit {image.id} named", f"It named {len(image.sample)}.")
    if len(image.sample[number]["key"]) >= KEY_CHARACTERS:
        remedy = "Ask the target's own database."
        raise Refused("Reading the key", f"it has {KEY_CHARACTERS} characters or more, and is named cut short", remedy)
    arguments = {"image": str(image.id), "number": str(number)}
    with transaction.atomic():
        _log_key(image.pipeline, arguments, f"{subject(actor)} asked to read a key at source and target.", actor, now)
        return intent_create(
            IntentAction.IMAGE_VALUE, actor=actor, now=now, pipeline=image.pipeline, arguments=arguments, wake=wake
        )


def event_read_record(
    intent: Intent,
    found: Mapping[str, Any],
    content: bytes | None,
    now: datetime,
    sink_contents: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Ends the intent with what both ends say; the contents lie apart, where roles are asked first.

    Raises: Refused where the intent is no longer ours.
    """
    with transaction.atomic():
        if content is not None or sink_contents:
            sink_body = json.dumps(list(sink_contents), ensure_ascii=False).encode() if sink_contents else None
            kept = {"body": content, "sink_body": sink_body, "kept_until": now + KEPT_FOR}
            EventContent.objects.update_or_create(intent=intent, defaults=kept)
        intent_finish(intent, found, now)


def event_sink_content_taken(content: EventContent, *, actor: str, now: datetime) -> list[dict[str, Any]]:
    """What the sink holds of an event that was read, cut as it was; that `actor` took it stands in the timeline.

    Raises: NotFound where it held nothing, or that was purged.
    """
    rows = sink_contents_of(content)
    _log_event(content.intent, f"{subject(actor)} took what the sink holds of the event at", actor, now)
    return rows


def event_content_downloaded(content: EventContent, *, actor: str, now: datetime) -> None:
    """Writes in the timeline that `actor` took the whole content away."""
    if content.intent.action == IntentAction.CONNECTION_TEST:
        _log_sample(content.intent, actor, now)
        return
    given = content.intent.arguments
    if content.intent.action == IntentAction.IMAGE_VALUE:
        says = f"{subject(actor)} downloaded what source and target hold of a key, {len(content.body)} bytes."
        _log_key(content.intent.pipeline, given, says, actor, now)
        return
    says = f"{subject(actor)} downloaded {len(content.body)} bytes of the event at"
    _log_event(content.intent, says, actor, now)


def sample_contents_keep(intent: Intent, starts: Sequence[Mapping[str, Any]], now: datetime) -> None:
    """How the contents of a connection test's sample rows begin, for who may read contents. In the caller's transaction."""
    body = json.dumps(list(starts), ensure_ascii=False).encode()
    EventContent.objects.update_or_create(intent=intent, defaults={"body": body, "kept_until": now + KEPT_FOR})


def sample_contents_read(content: EventContent, *, actor: str, now: datetime) -> dict[str, Any]:
    """The sample of a connection test with `content_start` in each row; that `actor` read it stands in the timeline.

    Raises: Refused where somebody else asked for the test (recovery_api.domain.samples).
    """
    _log_sample(content.intent, actor, now)
    sample = (content.intent.result or {})["sample"]
    starts = json.loads(bytes(content.body))
    return {**sample, "rows": [row | start for row, start in zip(sample["rows"], starts, strict=True)]}


def event_contents_purge(now: datetime) -> int:
    """How many contents went because their time is over."""
    return EventContent.objects.filter(kept_until__lt=now).delete()[0]


def _log_sample(intent: Intent, actor: str, now: datetime) -> None:
    if actor != intent.created_by:
        reason = f"{intent.created_by} asked for this test, and its rows are for who asked"
        raise Refused("Reading how the sample's contents begin", reason, "Test again: then they are for you.")
    end = intent.source or intent.sink
    word = end._meta.model_name if end else intent.arguments["end"]
    of = f"{word} {end.name}" if end else f"a {word} that was not registered"
    says = f"{subject(actor)} read how the contents of sample rows begin, of {of}."
    data = {"test": str(intent.pk), **({"end": word, "end_id": str(end.pk), "name": end.name} if end else {})}
    event_append(EventKind.CONTENT_READ, actor=actor, now=now, says=says, data=data)


def _log_key(pipeline: Pipeline, about: Mapping[str, Any], says: str, actor: str, now: datetime) -> None:
    event_append(EventKind.CONTENT_READ, actor=actor, now=now, says=says, pipeline=pipeline, data=dict(about))


def _log_event(intent: Intent, says: str, actor: str, now: datetime) -> None:
    """The event's place and the reading; never a content."""
    given, pipeline = intent.arguments, intent.pipeline
    assert pipeline is not None
    coordinate = Coordinate(int(given["position"]), int(given["ordinal"]))
    event_append(
        EventKind.CONTENT_READ,
        actor=actor,
        now=now,
        says=f"{says} {coordinate_format(coordinate, source_spelling(pipeline.source))}.",
        pipeline=pipeline,
        data={**given, "intent": str(intent.pk)},
    )
