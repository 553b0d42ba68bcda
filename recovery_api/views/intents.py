"""Intents: long work as a resource. Its row is the obligation; whoever waits looks at it again."""

from __future__ import annotations

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.domain.access import withdrawing_needs
from recovery_api.domain.errors import Refused
from recovery_api.domain.words import words
from recovery_api.models import LIVE_STATES, IntentAction, IntentState
from recovery_api.rows import Row, intent_as_row
from recovery_api.schema import operation
from recovery_api.selectors.intents import intent_get, intent_list
from recovery_api.serializers.fields import Choice, FlagWord, Name
from recovery_api.serializers.shapes import page_of
from recovery_api.serializers.work import IntentShape
from recovery_api.services.intents import intent_withdraw
from recovery_api.views.base import ApiView, answer, filtered_pipeline
from recovery_api.views.idempotent import idempotent
from recovery_api.views.named import NothingBody
from recovery_api.views.paging import PageQuery, page
from recovery_api.views.permission import actor, require
from recovery_api.views.waiting import WaitQuery, answered_when_over


class IntentsQuery(PageQuery):
    pipeline = Name(help_text="Only of this pipeline.")
    action = Choice(words(IntentAction))
    state = Choice(IntentState.values)
    is_live = FlagWord(help_text="true: only those queued or taken.")


class Intents(ApiView):
    query_class = IntentsQuery

    @operation(
        "list_intents",
        "Work that was asked for, newest first.",
        answer=page_of(IntentShape),
        query=IntentsQuery,
        errors=[422],
        tag="intents",
    )
    def get(self, request: Request) -> Response:
        found = intent_list(is_live=self.asked.get("is_live", False))
        if (pipeline := filtered_pipeline(self.asked)) is not None:
            found = found.filter(pipeline=pipeline)
        for name in ("action", "state"):
            if name in self.asked:
                found = found.filter(**{name: self.asked[name]})
        return page(request, self.asked, found, ("-created_at", "-id"), intent_as_row)


class IntentOne(ApiView):
    query_class = WaitQuery

    @operation(
        "show_intent",
        "One piece of work: state, progress, result, error.\n\nPoll it, once a second at most, or let it `wait` for the end.",
        answer=IntentShape,
        query=WaitQuery,
        errors=[404],
        tag="intents",
    )
    def get(self, request: Request, intent_id: str) -> Response:
        def look() -> tuple[Row, bool]:
            found = intent_get(intent_id)
            return intent_as_row(found, actor(request)), found.state not in LIVE_STATES

        return answered_when_over(look, self.asked)


class IntentCancel(ApiView):
    @operation(
        "cancel_intent",
        "Withdraw work that nobody took yet.\n\nNeeds what asking for it needs. A recovery is not cancelled but stopped.",
        answer=IntentShape,
        body=NothingBody,
        errors=[404],
        tag="intents",
    )
    @idempotent
    def post(self, request: Request, intent_id: str) -> Response:
        NothingBody.read(request.data)
        intent = intent_get(intent_id)
        require(request, withdrawing_needs(intent.action))
        if intent.recovery_id is not None:
            remedy = f"Stop it: POST /api/v1/recoveries/{intent.recovery_id}/stop."
            raise Refused(f"Cancelling {intent}", "it is a recovery's", remedy)
        intent_withdraw(intent, actor=actor(request), now=timezone.now())
        return answer(intent_as_row(intent_get(intent_id)))
