"""What audits observed of a pipeline over time."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.domain.history import FIRST_SPAN, SPANS
from recovery_api.history_rows import history_as_row
from recovery_api.schema import operation
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.ends import pipeline_get
from recovery_api.selectors.history import history_get
from recovery_api.serializers.fields import Choice, Query
from recovery_api.serializers.history import HistoryShape
from recovery_api.views.base import ApiView, answer


class HistoryQuery(Query):
    span = Choice(list(SPANS), help_text=f"How far back; {FIRST_SPAN} unless said.")


class PipelineHistoryOne(ApiView):
    query_class = HistoryQuery

    @operation(
        "show_history",
        "Which status held when, and how much was owed and waited, as audits saw it.\n\nWhat no audit covers is not observed; "
        "nothing is interpolated. Where many audits became one row, each figure is the worst of them.",
        answer=HistoryShape,
        query=HistoryQuery,
        is_named=True,
        errors=[404],
        tag="pipelines",
    )
    def get(self, request: Request, name: str) -> Response:
        return answer(history_as_row(history_get(pipeline_get(name), self.asked.get("span", FIRST_SPAN), now_get())))
