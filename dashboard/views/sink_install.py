"""The sink kit: its SQL shown for whoever may run it, or run by a worker as whoever may; or upgraded in place."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from dashboard.access import actor
from dashboard.forms import InstallForm
from dashboard.views.errors import error_page, gone_page
from recovery_api.domain.errors import FencepostError, NotFound
from recovery_api.domain.kinds import kind_get
from recovery_api.domain.kinds.base import KINDS
from recovery_api.models import LIVE_STATES, Intent, IntentAction, IntentState, Sink
from recovery_api.selectors.ends import sink_get
from recovery_api.selectors.intents import intent_get
from recovery_api.services.sink_jobs import sink_install_request


def install(request: HttpRequest, name: str) -> HttpResponse:
    """For a registered sink."""
    try:
        sink = sink_get(name)
    except NotFound as error:
        return gone_page(request, Sink, name, error)
    about = {"title": sink.name, "sink": sink, "back": reverse("sink", args=[name])}
    return _page(request, about, {"sink": sink}, reverse("sink-install", args=[name]))


def install_first(request: HttpRequest, intent_id: UUID) -> HttpResponse:
    """For the options of a test, before the sink is registered."""
    try:
        tested = intent_get(intent_id)
        if tested.action != IntentAction.CONNECTION_TEST or not _has_installer(tested.arguments.get("kind")):
            raise NotFound(f"Test {intent_id}", "the control database", "Register a sink again.")
    except FencepostError as error:
        return error_page(request, error)
    name = request.GET.get("name", "")
    kept = urlencode({"name": name}) if name else ""
    back = f"{reverse('sink-add')}?{urlencode({'from': str(intent_id)})}{'&' if kept else ''}{kept}"
    about = {"title": name or "the new sink", "sink": None, "back": back}
    url = f"{reverse('sink-install-first', args=[intent_id])}{'?' if kept else ''}{kept}"
    which = {name: tested.arguments[name] for name in ("kind", "options")}
    return _page(request, about, which, url)


def _has_installer(kind: str | None) -> bool:
    return kind in KINDS and kind_get(kind).installer is not None


def _page(request: HttpRequest, about: dict[str, Any], which: dict[str, Any], url: str) -> HttpResponse:
    form = InstallForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            intent = sink_install_request(
                actor=actor(request),
                now=timezone.now(),
                is_shown_only=request.POST.get("do") not in ("install", "upgrade"),
                is_upgrade=request.POST.get("do") == "upgrade",
                connection=form.cleaned_data["connection"] or None,
                grants=form.grants(),
                **which,
            )
        except FencepostError as error:
            form.add_error(None, str(error))
        else:
            return redirect(_with_job(url, intent.id))
    job = _job(request.GET.get("job", ""))
    context = {
        **about,
        "form": form,
        "url": url,
        "job": job,
        "job_url": _with_job(url, job.id) if job else "",
        "job_is_live": job is not None and job.state in LIVE_STATES,
        "result": job.result if job and job.state == IntentState.DONE else None,
    }
    template = "ends/_install_job.html" if request.headers.get("HX-Request") else "ends/install.html"
    return render(request, template, context, status=400 if form.is_bound and form.errors else 200)


def _with_job(url: str, job_id: UUID) -> str:
    return f"{url}{'&' if '?' in url else '?'}{urlencode({'job': str(job_id)})}"


def _job(text: str) -> Intent | None:
    try:
        intent = intent_get(UUID(text)) if text else None
    except (ValueError, FencepostError):
        return None
    return intent if intent and intent.action == IntentAction.SINK_INSTALL else None
