"""Sources and sinks: what is registered, how it was tested, what uses it, what happened to it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from dashboard.access import actor
from dashboard.forms import EndForm, initial_of, options_texts, shown
from dashboard.views.drills import drills_context
from dashboard.views.errors import error_page, gone_page, refused, said
from dashboard.views.filters import filters_read, page_read, query_of
from dashboard.views.overtaken import overtaken, version_read
from dashboard.views.sink_readings import reading_context
from recovery_api.domain.errors import FencepostError, NotFound, Outdated
from recovery_api.domain.kinds import kind_get
from recovery_api.models import LIVE_STATES, End, Intent, IntentAction, Plan, Sink, Source
from recovery_api.models.plans import WAITING_STATES
from recovery_api.purge_rows import purge_as_row
from recovery_api.selectors.ends import sink_get, source_get
from recovery_api.selectors.ends import sink_list as sinks
from recovery_api.selectors.ends import source_list as sources
from recovery_api.selectors.pairs import pipeline_allows
from recovery_api.selectors.purging import purge_check
from recovery_api.selectors.registry import end_history, pipelines_of
from recovery_api.selectors.versions import version_of
from recovery_api.services.ends import connection_test_request, sink_update, source_update
from recovery_api.services.presets import preset_filled
from recovery_api.services.retirement import sink_retire, source_retire
from recovery_api.services.sinks import sink_settle_request

PAGE = 50
SHOWN = 10
MODELS: dict[str, type[End]] = {"source": Source, "sink": Sink}


def end_list(request: HttpRequest, word: str) -> HttpResponse:
    """Every source, or every sink, with how it was tested and how many pipelines use it."""
    try:
        given = filters_read(request, {"q": (), "page": ()})
        number = page_read(given)
    except FencepostError as error:
        return error_page(request, error, back=request.path)
    used = Count("pipelines", filter=Q(pipelines__retired_at__isnull=True), distinct=True)
    if word == "sink":
        used += Count("pipelines_fed", filter=Q(pipelines_fed__retired_at__isnull=True), distinct=True)
    found = (sources() if word == "source" else sinks()).annotate(used_by=used)
    if text := given.get("q"):
        found = found.filter(Q(name__icontains=text) | Q(kind__icontains=text))
    page = Paginator(found, PAGE).get_page(number)
    lines = [(end, tested_word(end)) for end in page.object_list]
    context = {"word": word, "page": page, "lines": lines, "given": given, "query": query_of(given, "page")}
    return render(request, "ends/list.html", context)


def end(request: HttpRequest, word: str, name: str) -> HttpResponse:
    try:
        found = end_get(word, name)
    except NotFound as error:
        return gone_page(request, MODELS[word], name, error)
    context = _context(word, found)
    if isinstance(found, Source):
        context |= _purge(request, found)
    return render(request, "ends/end.html", context)


def _purge(request: HttpRequest, source: Source) -> dict[str, Any]:
    """What may be purged at the source, where the address asks for it."""
    below = request.GET.get("below", "").strip()
    if not below:
        return {}
    try:
        return {"below": below, "purge": purge_as_row(purge_check(source, below))}
    except FencepostError as error:
        return {"below": below, "purge_error": said(error)}


def end_test(request: HttpRequest, word: str, name: str) -> HttpResponse:
    """Posted: tests a registered end again, through a worker. Asked for: the region that shows the newest test."""
    try:
        found = end_get(word, name)
        if request.method == "POST":
            connection_test_request(actor=actor(request), now=timezone.now(), **{word: found})
            return redirect(word, name)
    except FencepostError as error:
        return error_page(request, error)
    return render(request, "ends/_test.html", _test_context(word, found))


def end_edit(request: HttpRequest, word: str, name: str) -> HttpResponse:
    """Other options; what uses it and lapses is shown before."""
    try:
        found = end_get(word, name)
    except NotFound as error:
        return gone_page(request, MODELS[word], name, error)
    kind = kind_get(found.kind)
    late: dict[str, Any] = {}
    if request.method == "POST":
        form = EndForm(request.POST, options=kind.options, has_name=False)
        if form.is_valid():
            given, read = form.given_options(), version_read(request)
            try:
                update: Any = source_update if word == "source" else sink_update
                update(found, given, read=read, actor=actor(request), now=timezone.now())
            except Outdated:
                found = end_get(word, name)
                late = overtaken(found, options_texts(found.options), options_texts(given))
            except FencepostError as error:
                form.error_place(error)
            else:
                messages.success(
                    request, f"{name} is changed. Test it: results from before this change no longer count."
                )
                return redirect(word, name)
    else:
        form = EndForm(options=kind.options, has_name=False, initial=initial_of(found.options, kind.options))
    context = {
        "word": word,
        "end": found,
        "kind": kind,
        "form": form,
        "version": version_of(found),
        **late,
        **_use(found),
    }
    status = 409 if late else 400 if form.is_bound and form.errors else 200
    return render(request, "ends/edit.html", context, status=status)


def end_retire(request: HttpRequest, word: str, name: str) -> HttpResponse:
    """Out of use, after its name was typed; what uses it is shown before."""
    try:
        found = end_get(word, name)
    except NotFound as error:
        return gone_page(request, MODELS[word], name, error)
    context: dict[str, Any] = {"word": word, "end": found, **_use(found)}
    if request.method == "POST":
        try:
            retire: Any = source_retire if word == "source" else sink_retire
            retire(found, request.POST.get("confirm", ""), actor=actor(request), now=timezone.now())
        except FencepostError as error:
            return render(request, "retire.html", {**context, **refused(error)}, status=409)
        messages.success(request, f"{name} is out of use. Its history stays; its name is free.")
        return redirect(f"{word}-list")
    return render(request, "retire.html", context)


def sink_settle(request: HttpRequest, name: str) -> HttpResponse:
    """Asks a worker to compare the sink with its memory and to make a restored one safe."""
    try:
        intent = sink_settle_request(sink_get(name), actor=actor(request), now=timezone.now())
    except FencepostError as error:
        return error_page(request, error)
    return redirect("work", intent.id)


def end_get(word: str, name: str) -> End:
    """Raises: NotFound."""
    return source_get(name) if word == "source" else sink_get(name)


def tested_word(end: End) -> str:
    """How an end was tested, as a status word; a restored sink's is that it was restored."""
    if isinstance(end, Sink) and end.restored_at is not None:
        return "restored"
    if end.report is None:
        return "untested"
    return "can_serve" if end.report["is_usable"] else "cannot_serve"


def _context(word: str, found: End) -> dict[str, Any]:
    kind = kind_get(found.kind)
    filled = preset_filled(found.options)
    set_options = [
        (o.name.replace("_", " "), shown(found.options[o.name]) + (" (preset)" if o.name in filled else ""))
        for o in kind.options
        if o.name in found.options
    ]
    context = {
        "word": word,
        "end": found,
        "kind": kind,
        "tested": tested_word(found),
        "set_options": set_options,
        "has_kit": kind.installer is not None,
        "events": list(end_history(found)[:SHOWN]),
        **_use(found),
        **_test_context(word, found),
    }
    if isinstance(found, Sink):
        context |= reading_context(found, None) | drills_context(found)
        if context["pair"] is not None:
            context["recovery_says"] = context["allows"].says if context["allows"] else ""
    return context


def _test_context(word: str, found: End) -> dict[str, Any]:
    newest = Intent.objects.filter(action=IntentAction.CONNECTION_TEST, **{word: found}).order_by("-created_at").first()
    return {
        "word": word,
        "end": found,
        "test": newest,
        "test_is_live": newest is not None and newest.state in LIVE_STATES,
        "report": found.report,
        "tested": tested_word(found),
    }


def _use(found: End) -> dict[str, Any]:
    """What uses this end, and how many plans wait on it."""
    pipelines = list(pipelines_of(found).select_related("sink", "delivery"))
    waiting = Plan.objects.filter(pipeline__in=pipelines, state__in=WAITING_STATES).count() if pipelines else 0
    pair = next((one for one in pipelines if isinstance(found, Sink) and one.delivery_id is not None), None)
    return {"used_by": pipelines, "waiting_plans": waiting, "pair": pair, "allows": pair and pipeline_allows(pair)}
