"""One's own password. A new one ends the other sessions; tokens live on until they are ended, and the page says so."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.forms import PasswordChangeForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from dashboard import sign_in_limit
from recovery_api.selectors.tokens import token_list, tokens_in_state


@never_cache
@sensitive_post_parameters()
def password(request: HttpRequest) -> HttpResponse:
    """The old one and a new one; wrong tries of the old one are counted like those of signing in."""
    form = PasswordChangeForm(request.user, request.POST or None)
    if request.method == "POST":
        address, name = request.META.get("REMOTE_ADDR", ""), str(request.user.get_username())
        if sign_in_limit.try_begin(address, name):
            context = {"form": PasswordChangeForm(request.user), "is_paused": True}
            return render(request, "password.html", context, status=429)
        is_valid = form.is_valid()
        if "old_password" not in form.errors:  # whose new one is too weak has guessed nothing
            sign_in_limit.try_succeeded(address, name)
        if is_valid:
            update_session_auth_hash(request, form.save())
            standing = tokens_in_state(token_list(request.user), "standing", timezone.now()).count()
            says = "Your password is changed; your other sessions have ended."
            if standing:
                says += f" {standing} API {'token' if standing == 1 else 'tokens'} of yours still stand: end them here."
            messages.success(request, says)
            return redirect("token-list")
    return render(request, "password.html", {"form": form}, status=400 if form.is_bound and form.errors else 200)
