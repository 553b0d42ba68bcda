"""Registering a source or a sink: its options, a test by a worker, what was found shown, and only then saved."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from dashboard.access import actor
from dashboard.forms import EndForm, initial_of
from dashboard.views.errors import error_page
from recovery_api.domain.errors import BadInput, FencepostError, NotFound, Refused
from recovery_api.domain.kinds import Kind, kind_get, kinds_offered
from recovery_api.models import LIVE_STATES, Intent, IntentAction, IntentState
from recovery_api.presets import Preset, preset_get, preset_names
from recovery_api.selectors.ends import sink_list, source_list
from recovery_api.selectors.intents import intent_get
from recovery_api.services.ends import connection_test_request, name_check, options_check, sink_create, source_create
from recovery_api.services.presets import OPTION, preset_check

TEST_HOLDS = timedelta(hours=1)
"""A test that is older is done again before what it found is saved."""


def add(request: HttpRequest, word: str) -> HttpResponse:
    """The form of one kind; posted, a test, or kept untested where that was asked for on purpose."""
    kinds = kinds_offered(word)
    chosen = request.POST.get("kind") or request.GET.get("kind") or (kinds[0].name if len(kinds) == 1 else "")
    if not chosen and not request.GET.get("from") and not request.GET.get("preset"):
        context = {"word": word, "kinds": kinds, "presets": list(map(preset_get, preset_names(word)))}
        return render(request, "ends/kinds.html", context)
    try:
        earlier = _test_of(word, UUID(request.GET["from"])) if request.GET.get("from") else None
        preset = _preset_of(word, request.GET.get("preset", ""))
        kind = kind_get(earlier.arguments["kind"] if earlier else preset.kind if preset else chosen, "kind")
        if kind.end != word:
            raise BadInput(
                "kind", f"{kind.name} is a kind of {kind.end}", f"Kinds: {', '.join(k.name for k in kinds)}."
            )
    except (ValueError, FencepostError) as error:
        known = error if isinstance(error, FencepostError) else NotFound("The test", "the control database", "")
        return error_page(request, known, back=request.path)
    if request.method != "POST":
        return _form_page(request, word, kind, _form_of(kind, request, earlier, preset), preset)
    form = EndForm(request.POST, options=kind.options)
    if form.is_valid():
        try:
            return _added(request, word, kind, form)
        except FencepostError as error:
            form.error_place(error)
    return _form_page(request, word, kind, form)


def found(request: HttpRequest, word: str, intent_id: UUID) -> HttpResponse:
    """What a test found, as soon as it did; posted, the end is saved with it."""
    name = (request.POST or request.GET).get("name", "")
    try:
        intent = _test_of(word, intent_id)
        if request.method == "POST":
            return _saved(request, word, name, intent)
    except FencepostError as error:
        return error_page(request, error, back=reverse(f"{word}-add"))
    kind = kind_get(intent.arguments["kind"])
    context = {
        "word": word,
        "name": name,
        "intent": intent,
        "is_live": intent.state in LIVE_STATES,
        "report": intent.result if intent.state == IntentState.DONE else None,
        "kind": kind,
        "has_kit": kind.installer is not None,
        "form_query": urlencode({"from": str(intent.id), "name": name}),
        "save_url": reverse(f"{word}-found", args=[intent.id]),
        "poll_url": f"{reverse(f'{word}-found', args=[intent.id])}?{urlencode({'name': name})}",
    }
    return render(request, "ends/_found.html" if request.headers.get("HX-Request") else "ends/found.html", context)


def _preset_of(word: str, name: str) -> Preset | None:
    """The preset to fill the form from. Raises: UnknownOption, BadInput (one that is refused, or of the other end)."""
    if not name:
        return None
    preset_check(word, preset_get(name).kind, {OPTION: name})
    return preset_get(name)


def _form_of(kind: Kind, request: HttpRequest, earlier: Intent | None, preset: Preset | None) -> EndForm:
    """A form as an earlier test had it, or filled from a preset. Posted, what stands in its fields is all that counts."""
    initial: dict[str, Any] = {"name": request.GET.get("name", "")}
    if preset is not None:
        initial |= initial_of({**preset.options, OPTION: preset.name}, kind.options)
    if earlier is not None:
        initial |= initial_of(earlier.arguments["options"], kind.options)
    return EndForm(options=kind.options, initial=initial)


def _form_page(
    request: HttpRequest, word: str, kind: Kind, form: EndForm, preset: Preset | None = None
) -> HttpResponse:
    status = 400 if form.is_bound and form.errors else 200
    presets = [one for one in map(preset_get, preset_names(word)) if one.kind == kind.name]
    context = {"word": word, "kind": kind, "form": form, "preset": preset, "presets": presets}
    return render(request, "ends/add.html", context, status=status)


def _added(request: HttpRequest, word: str, kind: Kind, form: EndForm) -> HttpResponse:
    """Raises: FencepostError for what the form cannot know."""
    name, options, now = form.cleaned_data["name"], form.given_options(), timezone.now()
    name_check(word, name)
    _free_check(word, name)
    if request.POST.get("do") == "untested":
        options_check(word, kind.name, options)
        create: Any = source_create if word == "source" else sink_create
        create(name, kind.name, options, actor=actor(request), now=now)
        messages.warning(request, f"{name} is registered untested: nothing is known of whether it can serve.")
        return redirect(word, name)
    intent = connection_test_request(actor=actor(request), now=now, end=word, kind=kind.name, options=options)
    return redirect(f"{reverse(f'{word}-found', args=[intent.id])}?{urlencode({'name': name})}")


def _saved(request: HttpRequest, word: str, name: str, intent: Intent) -> HttpResponse:
    """Raises: FencepostError where the test did not pass, is too old, or the name cannot be taken."""
    now = timezone.now()
    action = f"saving {word} {name}"
    if intent.state != IntentState.DONE or not (intent.result or {}).get("is_usable"):
        raise Refused(
            action, "its test did not find that it can serve", "Put right what it found, or save it untested."
        )
    if intent.finished_at is None or now - intent.finished_at > TEST_HOLDS:
        raise Refused(action, "its test is too old", "Test it again.")
    create: Any = source_create if word == "source" else sink_create
    arguments = intent.arguments
    create(name, arguments["kind"], arguments["options"], actor=actor(request), now=now, report=intent.result)
    messages.success(request, f"{name} is registered, as tested.")
    return redirect(word, name)


def _test_of(word: str, intent_id: UUID) -> Intent:
    """The test of an end of this word that is not registered. Raises: NotFound."""
    intent = intent_get(intent_id)
    if intent.action != IntentAction.CONNECTION_TEST or intent.arguments.get("end") != word:
        raise NotFound(f"Test {intent_id}", "the control database", f"Register a {word} again.")
    return intent


def _free_check(word: str, name: str) -> None:
    """Raises: BadInput before a test is run for a name that is taken."""
    registered = source_list() if word == "source" else sink_list()
    if registered.filter(name=name).exists():
        raise BadInput(f"{word}.name", f"{name!r} is taken", "Choose another.")
