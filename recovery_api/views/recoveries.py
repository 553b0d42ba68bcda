"""Recoveries: applied once, steered at safe points, settled from the sink, ended with a certificate."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.domain.errors import NotFound
from recovery_api.models import Recovery, RecoveryOutcome, RecoveryState, Wanted
from recovery_api.rows import Row, intent_as_row, recovery_as_row
from recovery_api.schema import operation
from recovery_api.selectors.clock import now_get
from recovery_api.selectors.plans import plan_get
from recovery_api.selectors.recoveries import recovery_by_id, recovery_list, with_live_work
from recovery_api.serializers.fields import Body, Choice, Name, Text, TextList
from recovery_api.serializers.recoveries import CertificateShape, RecoveryShape
from recovery_api.serializers.shapes import page_of
from recovery_api.serializers.work import IntentShape
from recovery_api.services.recoveries import recovery_request, recovery_settle_request, recovery_want
from recovery_api.views.base import ApiView, accepted, answer, filtered_pipeline, referenced
from recovery_api.views.idempotent import idempotent
from recovery_api.views.named import NothingBody
from recovery_api.views.paging import PageQuery, page
from recovery_api.views.permission import actor
from recovery_api.views.waiting import WaitQuery, answered_when_over


class RecoveriesQuery(PageQuery):
    pipeline = Name(help_text="Only of this pipeline.")
    state = Choice(RecoveryState.values)
    outcome = Choice(RecoveryOutcome.values)


class RecoveryBody(Body):
    plan = serializers.UUIDField(help_text="The approved plan.")
    digest = Text(help_text="Its digest, as approved.")
    pipeline = Name(help_text="The pipeline's name, typed: it must be the plan's.")
    reason = Text(help_text="Why, in a sentence; it stays in the timeline.")
    attestations = TextList(
        required=False, help_text="What you attest, each as the plan's `attestations` say to write it."
    )


class ReasonBody(Body):
    reason = Text(help_text="Why, in a sentence; it stays in the timeline.")


class Recoveries(ApiView):
    query_class = RecoveriesQuery

    @operation(
        "list_recoveries",
        "Recoveries, newest first.",
        answer=page_of(RecoveryShape),
        query=RecoveriesQuery,
        errors=[422],
        tag="recoveries",
    )
    def get(self, request: Request) -> Response:
        found = recovery_list(filtered_pipeline(self.asked))
        for name in ("state", "outcome"):
            if name in self.asked:
                found = found.filter(**{name: self.asked[name]})
        now = now_get()
        return page(
            request, self.asked, with_live_work(found), ("-created_at", "-id"), lambda one: recovery_row(one, now)
        )

    @operation(
        "apply_plan",
        "Apply an approved plan, by the plan's strategy, until its outcome is verified.\n\nAsked twice it is one recovery, and the second "
        "answer names the first. While another recovery of the pipeline is unfinished: 409, naming it.",
        answer=RecoveryShape,
        status=202,
        body=RecoveryBody,
        request_example={
            "plan": "0197b2f4-8f3c-7d51-9b1e-2f6f6c1f8d10",
            "digest": "3f6c…",
            "pipeline": "orders-mail",
            "reason": "The relay died at 03:12.",
        },
        tag="recoveries",
    )
    @idempotent
    def post(self, request: Request) -> Response:
        given = RecoveryBody.read(request.data)
        plan = referenced("plan", plan_get, str(given["plan"]))
        recovery = recovery_request(
            plan.id,
            given["reason"],
            given["pipeline"],
            actor(request),
            now=timezone.now(),
            attestations=given.get("attestations", ()),
            digest=given["digest"],
        )
        return answer(_row(recovery), 202, location=f"/api/v1/recoveries/{recovery.id}")


class RecoveryOne(ApiView):
    query_class = WaitQuery

    @operation(
        "show_recovery",
        "One recovery, and its live work.\n\nPoll it, once a second at most, or let it `wait` for the end.",
        answer=RecoveryShape,
        query=WaitQuery,
        errors=[404],
        tag="recoveries",
    )
    def get(self, request: Request, recovery_id: str) -> Response:
        def look() -> tuple[Row, bool]:
            row = _row(recovery_by_id(recovery_id))
            return row, row["outcome"] is not None

        return answered_when_over(look, self.asked)


class _Wanted(ApiView):
    wanted: ClassVar[str]

    def steered(self, request: Request, recovery_id: str) -> Response:
        given = ReasonBody.read(request.data)
        recovery = recovery_want(
            recovery_by_id(recovery_id),
            self.wanted,
            actor=actor(request),
            now=timezone.now(),
            reason=given["reason"],
        )
        return answer(_row(recovery))


def _steering(name: str, says: str) -> Any:
    return operation(f"{name}_recovery", says, answer=RecoveryShape, body=ReasonBody, errors=[404], tag="recoveries")


class RecoveryPause(_Wanted):
    wanted = Wanted.PAUSE

    @_steering("pause", "Ask it to wait at the next safe point. An open claim stays open.")
    @idempotent
    def post(self, request: Request, recovery_id: str) -> Response:
        return self.steered(request, recovery_id)


class RecoveryResume(_Wanted):
    wanted = Wanted.RUN

    @_steering("resume", "Ask a paused one to go on.")
    @idempotent
    def post(self, request: Request, recovery_id: str) -> Response:
        return self.steered(request, recovery_id)


class RecoveryStop(_Wanted):
    wanted = Wanted.STOP

    @_steering("stop", "Ask it to end at the next safe point. A fence already raised stays raised.")
    @idempotent
    def post(self, request: Request, recovery_id: str) -> Response:
        return self.steered(request, recovery_id)


class RecoverySettle(ApiView):
    @operation(
        "settle_recovery",
        "Learn from the sink what became of it: an intent; the live one where somebody is at it already.",
        answer=IntentShape,
        status=202,
        body=NothingBody,
        errors=[404],
        tag="recoveries",
    )
    @idempotent
    def post(self, request: Request, recovery_id: str) -> Response:
        NothingBody.read(request.data)
        recovery = recovery_by_id(recovery_id)
        return accepted(recovery_settle_request(recovery, actor=actor(request), now=timezone.now()))


class RecoveryCertificate(ApiView):
    @operation(
        "show_certificate",
        "The certificate: what was judged, on which evidence, with which digests.\n\n404 while there is none.",
        answer=CertificateShape,
        errors=[404],
        tag="recoveries",
    )
    def get(self, request: Request, recovery_id: str) -> Response:
        row = recovery_as_row(recovery_by_id(recovery_id), now_get())
        if row["certificate"] is None:
            now_is = row["outcome"] or row["state"]
            raise NotFound(f"A certificate of recovery {recovery_id}", "the control database", f"It is {now_is}.")
        return answer({name: row[name] for name in CertificateShape().fields})


def recovery_row(recovery: Recovery, now: datetime) -> Row:
    """A recovery with its live intent, which `with_live_work` has looked up."""
    live = getattr(recovery, "live_work", [])
    return {**recovery_as_row(recovery, now), "work": intent_as_row(live[0]) if live else None}


def _row(recovery: Recovery) -> Row:
    return recovery_row(with_live_work(recovery_list()).get(pk=recovery.pk), now_get())
