"""Registering, changing and retiring a pipeline."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from dashboard.access import actor
from dashboard.forms import PipelineForm, initial_of, options_texts
from dashboard.views.errors import gone_page, refused
from dashboard.views.overtaken import overtaken, version_read
from recovery_api.domain.abilities import DELIVERIES, RECORDS, Ability
from recovery_api.domain.errors import BadInput, FencepostError, NotFound, Outdated
from recovery_api.domain.kinds import abilities_of
from recovery_api.domain.pipelines import OPTIONS
from recovery_api.models import End, Pipeline, Plan, Sink
from recovery_api.models.plans import WAITING_STATES
from recovery_api.selectors.ends import pipeline_get, sink_get, source_get, source_list
from recovery_api.selectors.registry import sinks_free
from recovery_api.selectors.versions import version_of
from recovery_api.services.pipelines import pipeline_check, pipeline_create, pipeline_update
from recovery_api.services.retirement import pipeline_retire


def add(request: HttpRequest) -> HttpResponse:
    """A source, a sink that serves no pipeline yet, and the keys owed; of ends that passed their test."""
    free = list(sinks_free())
    names: dict[str, Any] = {
        "sources": list(source_list().values_list("name", flat=True)),
        "sinks": _able(free, RECORDS),
        "deliveries": _able(free, DELIVERIES),
    }
    if request.method == "POST":
        form = PipelineForm(request.POST, options=OPTIONS.options, **names)
        if form.is_valid():
            try:
                name = _create(request, form)
            except FencepostError as error:
                form.error_place(error)
            else:
                messages.success(request, f"{name} is registered. Audit it, and its status is known.")
                return redirect("pipeline", name)
    else:
        given = {name: request.GET.get(name, "") for name in ("source", "sink", "delivery", "name")}
        form = PipelineForm(options=OPTIONS.options, initial=given, **names)
    context = {"form": form, **names, "offers_untested": form.is_bound and bool(form.errors)}
    return render(request, "pipelines/add.html", context, status=400 if form.is_bound and form.errors else 200)


def edit(request: HttpRequest, name: str) -> HttpResponse:
    """Delivery, scope, options and the rule about approvers, all of them; what lapses is shown before."""
    try:
        found = pipeline_get(name)
    except NotFound as error:
        return gone_page(request, Pipeline, name, error)
    own = found.delivery.name if found.delivery else ""
    deliveries = sorted({*_able(sinks_free(), DELIVERIES), *filter(None, [own])})
    shape: dict[str, Any] = {"options": OPTIONS.options, "is_new": False, "deliveries": deliveries}
    late: dict[str, Any] = {}
    if request.method == "POST":
        form = PipelineForm(request.POST, **shape)
        if form.is_valid():
            try:
                pipeline_update(
                    found,
                    delivery=_delivery(form),
                    scope=form.keys(),
                    options=form.given_options(),
                    requires_other_approver=not form.cleaned_data["author_may_approve"],
                    read=version_read(request),
                    actor=actor(request),
                    now=timezone.now(),
                )
            except Outdated:
                found = pipeline_get(name)
                late = overtaken(found, _kept_texts(found), _entered_texts(form))
            except FencepostError as error:
                form.error_place(error)
            else:
                messages.success(request, f"{name} is changed.")
                return redirect("pipeline", name)
    else:
        initial = {
            "delivery": own,
            "scope_kind": "every" if found.scope is None else "some",
            "scope": "\n".join(found.scope or []),
            "author_may_approve": not found.requires_other_approver,
            **initial_of(found.options, OPTIONS.options),
        }
        form = PipelineForm(initial=initial, **shape)
    waiting = Plan.objects.filter(pipeline=found, state__in=WAITING_STATES).count()
    context = {"pipeline": found, "form": form, "waiting_plans": waiting, "version": version_of(found), **late}
    status = 409 if late else 400 if form.is_bound and form.errors else 200
    return render(request, "pipelines/edit.html", context, status=status)


def retire(request: HttpRequest, name: str) -> HttpResponse:
    """Out of use, after its name was typed."""
    try:
        found = pipeline_get(name)
    except NotFound as error:
        return gone_page(request, Pipeline, name, error)
    waiting = Plan.objects.filter(pipeline=found, state__in=WAITING_STATES).count()
    context: dict[str, Any] = {"word": "pipeline", "end": found, "used_by": [], "waiting_plans": waiting}
    if request.method == "POST":
        try:
            pipeline_retire(found, request.POST.get("confirm", ""), actor=actor(request), now=timezone.now())
        except FencepostError as error:
            return render(request, "retire.html", {**context, **refused(error)}, status=409)
        messages.success(request, f"{name} is out of use. Its history stays; its name and its sinks are free.")
        return redirect("overview")
    return render(request, "retire.html", context)


def _able(sinks: Iterable[Sink], abilities: frozenset[Ability]) -> list[str]:
    """The names of those that have one of these abilities."""
    return [sink.name for sink in sinks if abilities_of(sink.kind, sink.options) & abilities]


def _delivery(form: PipelineForm) -> Sink | None:
    """The sink to send into. None: the one that holds the record."""
    name = form.cleaned_data["delivery"]
    return sink_get(name) if name else None


def _kept_texts(pipeline: Pipeline) -> dict[str, str]:
    """What the form changes, as it is now, by field."""
    return _texts(
        pipeline.delivery.name if pipeline.delivery else "",
        pipeline.scope,
        not pipeline.requires_other_approver,
        pipeline.options,
    )


def _entered_texts(form: PipelineForm) -> dict[str, str]:
    given = form.cleaned_data
    return _texts(given["delivery"], form.keys(), given["author_may_approve"], form.given_options())


def _texts(delivery: str, keys: list[str] | None, author_may: bool, options: dict[str, Any]) -> dict[str, str]:
    return {
        "delivered through": delivery or "the record itself",
        "scope": "every key" if keys is None else "\n".join(keys),
        "author may approve": "yes" if author_may else "no",
        **options_texts(options),
    }


def _create(request: HttpRequest, form: PipelineForm) -> str:
    """Raises: FencepostError; BadInput where an end never passed a test and that was not accepted on purpose."""
    source, sink = source_get(form.cleaned_data["source"]), sink_get(form.cleaned_data["sink"])
    name: str = form.cleaned_data["name"]
    delivery = _delivery(form)
    given: dict[str, Any] = {"delivery": delivery, "scope": form.keys(), "options": form.given_options()}
    pipeline_check(name, sink, **given)
    if request.POST.get("do") != "untested":
        ends: tuple[tuple[str, End | None], ...] = (("source", source), ("sink", sink), ("delivery", delivery))
        for word, end in ends:
            if end is not None and (end.report is None or not end.report["is_usable"]):
                problem = "never passed a test" if end.report is None else "could not serve when it was tested"
                raise BadInput(f"pipeline.{word}", f"{end.name} {problem}.", "Test it on its page, or register anyway.")
    pipeline_create(
        name,
        source,
        sink,
        requires_other_approver=not form.cleaned_data["author_may_approve"],
        actor=actor(request),
        now=timezone.now(),
        **given,
    )
    return name
