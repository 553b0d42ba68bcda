"""API tokens: one's own, made and revoked here as by REST; whoever configures sees and revokes everybody's.

A new token is in one answer and nowhere else. The form carries a key of its own, so that a reload or a double click
makes no second token, and says what became of the first.
"""

from __future__ import annotations

import shlex
from typing import Any
from uuid import UUID, uuid4

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from dashboard.access import actor, roles
from dashboard.views.errors import errors_shown
from dashboard.views.filters import filters_read, page_read, query_of
from recovery_api.domain.access import Role, roles_below
from recovery_api.domain.errors import FencepostError
from recovery_api.models import Token
from recovery_api.selectors import tokens as selected
from recovery_api.services import tokens as services
from recovery_api.services.idempotency import answer_find, answer_remember, key_locked

PAGE = 50
STATES = ("standing", "expired", "revoked")
MEANS = {
    Role.VIEWER: "sees everything but credentials; contents masked",
    Role.OPERATOR: "audits, plans, acknowledges omissions, reads contents whole",
    Role.APPROVER: "approves, applies, steers and settles, and what an operator may",
    Role.ADMIN: "registers and configures; sees and revokes everybody's tokens",
}


class TokenForm(forms.Form):
    """A name, an end, and a limit among the roles its person has."""

    key = forms.UUIDField(widget=forms.HiddenInput)
    name = forms.CharField(max_length=200, help_text="What it is for: the tool or the runbook that will hold it.")
    days = forms.IntegerField(
        min_value=1,
        max_value=services.DAYS_MOST,
        initial=services.DAYS,
        label="Days it stands",
        help_text=f"1 to {services.DAYS_MOST}. Then it ends by itself.",
    )
    roles = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple,
        help_text="Its limit. It never gives more than you have, and loses what you lose.",
    )

    def __init__(self, *args: Any, held: frozenset[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        offered = [(role.value, f"{role.value}: {MEANS[role]}") for role in Role if role.value in roles_below(held)]
        field = self.fields["roles"]
        assert isinstance(field, forms.MultipleChoiceField)
        field.choices = offered
        field.initial = [value for value, _ in offered[:1]]
        self.fields["name"].widget.attrs |= {"autocomplete": "off", "spellcheck": "false"}


@never_cache
@errors_shown
def token_list(request: HttpRequest) -> HttpResponse:
    """One's own tokens and the form for another; posted, the new token, this once."""
    held = roles(request) or frozenset()
    form = TokenForm(request.POST or None, held=held, initial={"key": uuid4()})
    made: dict[str, Any] = {}
    if request.method == "POST" and form.is_valid():
        try:
            made = _make(request, form.cleaned_data, held)
        except FencepostError as error:
            form.add_error(None, str(error))
        else:
            form = TokenForm(held=held, initial={"key": uuid4()})
    context = _context(request, selected.token_list(request.user), ("state", "page"))
    is_refused = form.is_bound and form.errors
    standing = selected.tokens_in_state(selected.token_list(request.user), "standing", timezone.now()).count()
    context |= {**made, "form": form, "held": held, "standing": standing}
    return render(request, "tokens/list.html", context, status=400 if is_refused else 200)


@errors_shown
def token_everybody(request: HttpRequest) -> HttpResponse:
    """Every token there is, filtered by person and state."""
    context = _context(request, selected.token_list(), ("state", "q", "page"))
    return render(request, "tokens/everybody.html", context)


@errors_shown
def token_revoke(request: HttpRequest, token_id: UUID) -> HttpResponse:
    """Shows what is about to end; posted, ends it."""
    token = selected.token_visible(token_id, request.user, roles(request) or ())
    is_mine = token.user_id == request.user.pk
    back = "token-list" if is_mine else "token-everybody"
    now = timezone.now()
    if request.method == "POST":
        services.token_revoke(token, actor=actor(request), now=now)
        messages.success(request, f"{token.name} is revoked: it stands no more, from the next request on.")
        return redirect(back)
    context = {"token": token, "state": selected.token_state(token, now), "is_mine": is_mine, "back": reverse(back)}
    return render(request, "tokens/revoke.html", context)


@require_POST
@errors_shown
def token_end_all(request: HttpRequest) -> HttpResponse:
    """Ends every token of one's own that stands: one press, for who fears that one was seen."""
    ended = services.tokens_end(request.user, actor=actor(request), now=timezone.now())
    says = f"{ended} {'token' if ended == 1 else 'tokens'} ended." if ended else "No token of yours stood."
    messages.success(request, f"{says} From the next request on none of them works.")
    return redirect("token-list")


def _make(request: HttpRequest, given: dict[str, Any], held: frozenset[str]) -> dict[str, Any]:
    """The new token for the page, or that this form was sent before. Raises: FencepostError."""
    now, key = timezone.now(), f"token page {given['key']}"
    with key_locked(request.user.pk, key) as is_ours:
        if not is_ours or answer_find(request.user.pk, key, now) is not None:
            return {"was_made_before": True}
        row, text = services.token_create(
            request.user, given["name"], given["roles"], held=held, actor=actor(request), now=now, days=given["days"]
        )
        answer_remember(
            request.user.pk, key, now=now, request_digest="", status=200, content_type="text/plain", body=str(row.id)
        )
    me = request.build_absolute_uri(reverse("api-me"))
    curl = shlex.join(["curl", "-sS", "-H", f"Authorization: Bearer {text}", me])
    return {"new_token": row, "secret": text, "curl": curl}


def _context(request: HttpRequest, found: QuerySet[Token], known: tuple[str, ...]) -> dict[str, Any]:
    """Raises: UnknownOption, BadInput for a filter that is not understood."""
    given = filters_read(request, {name: STATES if name == "state" else () for name in known})
    now = timezone.now()
    if state := given.get("state"):
        found = selected.tokens_in_state(found, state, now)
    if text := given.get("q"):
        found = found.filter(Q(user__username__icontains=text) | Q(name__icontains=text))
    page = Paginator(found, PAGE).get_page(page_read(given))
    lines = [(token, selected.token_state(token, now)) for token in page.object_list]
    return {"page": page, "lines": lines, "given": given, "query": query_of(given, "page"), "states": STATES}
