"""Runbooks, so that an incident tool can show them beside its alert: filled in with a pipeline's own values, as on their page."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.runbooks import filled_markdown, runbook_get, runbook_page, runbook_text, team_text
from recovery_api.schema import operation
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.fleet import pipeline_status
from recovery_api.selectors.runbooks import runbook_values
from recovery_api.serializers.fields import Name, Query
from recovery_api.serializers.runbooks import RunbookShape
from recovery_api.views.base import ApiView, answer, filtered_pipeline


class RunbookQuery(Query):
    pipeline = Name(help_text="Filled in for this one; left out: PIPELINE, SINK and the like stay as they are.")


class RunbookOne(ApiView):
    query_class = RunbookQuery

    @operation(
        "show_runbook",
        "One runbook, by the name of an alert's cause or of a status.\n\nAn alert's `runbook` is this address with its pipeline.",
        answer=RunbookShape,
        query=RunbookQuery,
        is_named=True,
        errors=[404, 422],
        tag="alerts",
    )
    def get(self, request: Request, name: str) -> Response:
        book, pipeline = runbook_get(name), filtered_pipeline(self.asked)
        values = runbook_values(pipeline, pipeline_status(pipeline, now_get())) if pipeline else {}
        row = {
            "name": book.name,
            "title": book.title,
            "pipeline": pipeline.name if pipeline else None,
            "markdown": filled_markdown(runbook_text(name), values),
            "team_markdown": team_text(name),
            "html": runbook_page(name, values),
        }
        return answer(row)
