"""Signing in and out."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth import login, logout
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from dashboard import sign_in_limit
from recovery_api.selectors.people import people_exist


@never_cache
@sensitive_post_parameters("password")
def sign_in(request: HttpRequest) -> HttpResponse:
    """A name and a password; after too many wrong ones, a pause that is said."""
    if request.method == "POST":
        address, name = request.META.get("REMOTE_ADDR", ""), request.POST.get("username", "")
        if seconds := sign_in_limit.try_begin(address, name):
            context = {"form": AuthenticationForm(request), "wait_seconds": seconds, "next": _next(request)}
            paused = render(request, "sign_in.html", context, status=429)
            paused["Retry-After"] = str(seconds)
            return paused
        form = AuthenticationForm(request, data=request.POST)
        if form.is_valid():
            sign_in_limit.try_succeeded(address, name)
            login(request, form.get_user())
            return HttpResponseRedirect(_next(request))
    elif request.user.is_authenticated:
        return HttpResponseRedirect(_next(request))
    else:
        form = AuthenticationForm(request)
    context = {"form": form, "next": _next(request), "is_nobody_there": not people_exist()}
    return render(request, "sign_in.html", context)


def sign_in_elsewhere(request: HttpRequest) -> HttpResponse:
    """Django's own sign-in form, which knows no limit, leads to ours; who is signed in already may not what is there."""
    if request.user.is_authenticated:
        says = "Needs an account that may look at the tables; this one may not."
        return render(request, "403.html", {"says": says, "route": "admin"}, status=403)
    return redirect_to_login(_next(request), settings.LOGIN_URL)


def sign_out(request: HttpRequest) -> HttpResponse:
    logout(request)
    return redirect(settings.LOGOUT_REDIRECT_URL)


def _next(request: HttpRequest) -> str:
    """Where to go afterwards: only ever a path of this site."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    is_ours = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    return wanted if is_ours and wanted.startswith("/") else resolve_url(settings.LOGIN_REDIRECT_URL)
