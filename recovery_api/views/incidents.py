"""Incidents, so that an incident tool can mirror them: opened, changed, noted, told as one timeline and a post-mortem."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.domain.alerts.causes import Severity
from recovery_api.domain.incidents import IncidentState
from recovery_api.domain.words import words
from recovery_api.exceptions import BadRequest
from recovery_api.incident_rows import figures_as_row, incident_as_row
from recovery_api.models import Pipeline
from recovery_api.post_mortems import post_mortem_html, post_mortem_markdown
from recovery_api.schema import operation
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.ends import pipeline_get
from recovery_api.selectors.incidents import incident_figures, incident_get, incident_list, incident_timeline
from recovery_api.serializers.fields import Body, Choice, FlagWord, Name, Text, TextList
from recovery_api.serializers.incidents import IncidentShape, PostMortemShape
from recovery_api.serializers.shapes import TimelineLineShape, page_of
from recovery_api.services.incidents import NOTE_LONGEST, incident_change, incident_note, incident_open
from recovery_api.views.base import ApiView, answer, filtered_pipeline, referenced
from recovery_api.views.conditional import tagged, versions_read
from recovery_api.views.idempotent import idempotent
from recovery_api.views.paging import PageQuery, page
from recovery_api.views.permission import actor
from recovery_api.views.timelines import lines_page


class IncidentsQuery(PageQuery):
    state = Choice(words(IncidentState))
    severity = Choice(words(Severity))
    pipeline = Name(help_text="Only those of this pipeline.")
    is_live = FlagWord(help_text="true: only those that are not closed.")


class IncidentBody(Body):
    title = Text(help_text="As people will call it.")
    pipelines = TextList(required=False, help_text="By name.")
    severity = Choice(words(Severity), required=False)
    commander = Text(required=False, allow_blank=True)
    alert = Text(required=False, help_text="The key of the alert that it is opened from.")
    noticed_at = serializers.DateTimeField(required=False, help_text="When it was first said; left out: now.")


class IncidentChange(Body):
    title = Text(required=False)
    state = Choice(words(IncidentState), required=False)
    severity = Choice(words(Severity), required=False)
    commander = Text(required=False, allow_blank=True)
    cause = Text(required=False, allow_blank=True, max_length=NOTE_LONGEST, help_text="Needed to close it.")
    pipelines = TextList(required=False, help_text="All of them: what is left out is out.")
    alert = Text(required=False, help_text="The key of an alert that belongs to it, too.")


class NoteBody(Body):
    text = Text(max_length=NOTE_LONGEST)


class Incidents(ApiView):
    query_class = IncidentsQuery

    @operation(
        "list_incidents",
        "Incidents, newest first.",
        answer=page_of(IncidentShape),
        query=IncidentsQuery,
        errors=[422],
        tag="incidents",
    )
    def get(self, request: Request) -> Response:
        found = incident_list(is_live=self.asked.get("is_live", False))
        for name in ("state", "severity"):
            if name in self.asked:
                found = found.filter(**{name: self.asked[name]})
        if (pipeline := filtered_pipeline(self.asked)) is not None:
            found = found.filter(pipelines=pipeline)
        return page(request, self.asked, found, ("-opened_at", "-id"), incident_as_row)

    @operation(
        "create_incident",
        "Open an incident, by hand or from an alert.",
        answer=IncidentShape,
        status=201,
        body=IncidentBody,
        request_example={
            "title": "Orders owed after the relay died",
            "pipelines": ["orders-mail"],
            "severity": "critical",
        },
        tag="incidents",
    )
    @idempotent
    def post(self, request: Request) -> Response:
        given = IncidentBody.read(request.data)
        pipelines = _named(given.pop("pipelines", []))
        incident = incident_open(given.pop("title"), pipelines, actor=actor(request), now=timezone.now(), **given)
        return tagged(answer(incident_as_row(incident), 201, location=f"/api/v1/incidents/{incident.id}"), incident)


class IncidentOne(ApiView):
    @operation("show_incident", "One incident.", answer=IncidentShape, errors=[404], tag="incidents")
    def get(self, request: Request, incident_id: str) -> Response:
        incident = incident_get(incident_id)
        return tagged(answer(incident_as_row(incident)), incident)

    @operation(
        "update_incident",
        "Change its title, state, severity, commander, cause or pipelines.\n\nWhat is left out stays. Closing needs a cause: 409 "
        "without.",
        answer=IncidentShape,
        body=IncidentChange,
        errors=[404, 412],
        request_example={"state": "mitigated", "commander": "ada"},
        tag="incidents",
    )
    def patch(self, request: Request, incident_id: str) -> Response:
        given: dict[str, Any] = IncidentChange.read(request.data)
        read = versions_read(request)
        if not given:
            raise BadRequest("body", "names nothing to change", "See the members of this operation.")
        if "pipelines" in given:
            given["pipelines"] = _named(given["pipelines"])
        incident_change(incident_get(incident_id), read=read, actor=actor(request), now=timezone.now(), **given)
        changed = incident_get(incident_id)
        return tagged(answer(incident_as_row(changed)), changed)


class IncidentNotes(ApiView):
    @operation(
        "create_incident_note",
        "Write a note into its timeline. It is never changed.",
        answer=IncidentShape,
        status=201,
        body=NoteBody,
        errors=[404],
        tag="incidents",
    )
    @idempotent
    def post(self, request: Request, incident_id: str) -> Response:
        given, incident = NoteBody.read(request.data), incident_get(incident_id)
        incident_note(incident, given["text"], actor=actor(request), now=timezone.now())
        return answer(incident_as_row(incident), 201)


class IncidentTimeline(ApiView):
    query_class = PageQuery

    @operation(
        "list_incident_events",
        "Everything that happened to it, to its pipelines and to their alerts, in the order it was written.",
        answer=page_of(TimelineLineShape, "IncidentTimelinePage"),
        query=PageQuery,
        errors=[404],
        tag="incidents",
    )
    def get(self, request: Request, incident_id: str) -> Response:
        return lines_page(request, self.asked, incident_timeline(incident_get(incident_id)))


class IncidentPostMortem(ApiView):
    @operation(
        "show_post_mortem",
        "Its figures, and the post-mortem as Markdown and as HTML.\n\nFigures come from what was recorded; what no row shows is "
        "null.",
        answer=PostMortemShape,
        errors=[404],
        tag="incidents",
    )
    def get(self, request: Request, incident_id: str) -> Response:
        incident = incident_get(incident_id)
        now = now_get()
        text = post_mortem_markdown(incident, now)
        return answer(
            {
                "incident": incident_as_row(incident),
                "figures": figures_as_row(incident_figures(incident, now)),
                "markdown": text,
                "html": post_mortem_html(incident, text),
            }
        )


def _named(names: list[str]) -> list[Pipeline]:
    return [referenced("pipelines", pipeline_get, name) for name in dict.fromkeys(names)]
