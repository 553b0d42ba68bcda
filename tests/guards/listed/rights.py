"""Who may do what, and how often they may try."""

from __future__ import annotations

from tests.guards.guard import Guard

SECURITY = "tests/integration/security"
PAGES = "tests/integration/pages"
API = "tests/integration/api"

GUARDS = (
    Guard(
        "a form is posted from another site",
        "dashboard/settings.py",
        '    "django.middleware.csrf.CsrfViewMiddleware",\n',
        "",
        (f"{SECURITY}/test_people.py::test_every_post_of_a_page_needs_the_csrf_token",),
    ),
    Guard(
        "pages are open to everybody",
        "dashboard/settings.py",
        '    "dashboard.access.AccessMiddleware",\n',
        "",
        (f"{PAGES}/test_routes.py::test_nobody_is_sent_to_the_sign_in_page",),
    ),
    Guard(
        "REST is open to everybody",
        "recovery_api/views/permission.py",
        "        if is_allowed(route, request.method, roles(request)):\n",
        "        if True:\n",
        (f"{API}/test_access.py::test_every_route_and_method_answers_each_role_as_the_table_says",),
    ),
    Guard(
        "a route that is not in the table is allowed",
        "recovery_api/domain/access.py",
        "    if needed is None:\n        return False\n",
        "    if needed is None:\n        return True\n",
        ("tests/unit/test_access.py::test_a_route_that_is_not_in_the_table_is_refused_to_everybody",),
    ),
    Guard(
        "a token gives more than its roles",
        "recovery_api/views/permission.py",
        "            roles_below(held) & frozenset(limit) if held is not None and limit is not None else held\n",
        "            held\n",
        (f"{API}/test_access.py::test_token_gives_no_more_than_its_roles_whatever_its_person_is",),
    ),
    Guard(
        "a token gives more than its person may now",
        "recovery_api/views/permission.py",
        "            roles_below(held) & frozenset(limit) if held is not None and limit is not None else held\n",
        "            frozenset(limit) if held is not None and limit is not None else held\n",
        (f"{SECURITY}/test_people.py::test_s10_a_token_loses_what_its_person_loses",),
    ),
    Guard(
        "a token is made of a role that its person does not have",
        "recovery_api/domain/access.py",
        "    return frozenset(role.value for role, granted in PERMISSIONS_OF.items() if granted <= held)\n",
        "    return frozenset(role.value for role in PERMISSIONS_OF)\n",
        (f"{SECURITY}/test_people.py::test_s10_a_token_may_have_any_role_below_its_persons",),
    ),
    Guard(
        "a token that was revoked still stands",
        "recovery_api/selectors/tokens.py",
        "    if token.revoked_at is not None:\n",
        "    if False:\n",
        (f"{API}/test_tokens.py::test_revoked_token_stands_no_more",),
    ),
    Guard(
        "a token that expired still stands",
        "recovery_api/selectors/tokens.py",
        '    return "standing" if token.expiry > now else "expired"\n',
        '    return "standing"\n',
        (f"{API}/test_tokens.py::test_token_ends_and_its_row_stays",),
    ),
    Guard(
        "calls are not counted",
        "recovery_api/views/throttling.py",
        '        rate: str | None = settings.FENCEPOST_API_RATES["person"]\n',
        "        rate: str | None = None\n",
        (f"{API}/test_requests.py::test_too_many_requests_are_told_when_to_come_again",),
    ),
    Guard(
        "work is withdrawn by who may not ask for it",
        "dashboard/views/work.py",
        "    if (needed := withdrawing_needs(intent.action)) not in permissions_of(held := roles(request) or frozenset()):\n"
        '        return refused(request, "work-cancel", refusal_says(needed, held))\n',
        "",
        (f"{SECURITY}/test_role_matrix.py::test_s6_withdrawing_needs_what_asking_needed_on_pages_and_by_rest",),
    ),
    Guard(
        "passwords are tried without end by way of the tables",
        "dashboard/urls.py",
        '    path("admin/login/", sign_in.sign_in_elsewhere, name="admin-sign-in"),\n',
        "",
        (f"{PAGES}/test_sign_in.py::test_s3_there_is_one_sign_in_with_one_limit",),
    ),
    Guard(
        "anybody says whose address is counted",
        "dashboard/client_address.py",
        '    chain = ", ".join(filter(None, [forwarded, peer]))\n',
        '    return forwarded.partition(",")[0] or None\n',
        (f"{PAGES}/test_sign_in.py::test_s4_nobody_but_a_trusted_proxy_says_who_asks",),
    ),
    Guard(
        "a name that is spelled otherwise has tries of its own",
        "dashboard/sign_in_limit.py",
        '    whole = unicodedata.normalize("NFKC", name.strip()).casefold()\n',
        "    return name\n",
        (f"{PAGES}/test_sign_in.py::test_s5_a_name_respelled_is_the_same_name",),
    ),
    Guard(
        "what lies in Redis is run",
        "dashboard/settings.py",
        '            "serializer": "dashboard.sign_in_limit.WholeNumbers",\n',
        "",
        (f"{PAGES}/test_sign_in.py::test_nothing_read_from_redis_is_run",),
    ),
    Guard(
        "a sign-in leads to another site",
        "dashboard/views/sign_in.py",
        '    return wanted if is_ours and wanted.startswith("/") else',
        "    return wanted if wanted else",
        (f"{PAGES}/test_sign_in.py::test_next_never_leads_to_another_site",),
    ),
    Guard(
        "a key that was used answers another request",
        "recovery_api/views/idempotent.py",
        "                if found.request_digest != digest:\n",
        "                if False:\n",
        (f"{API}/test_idempotency.py::test_same_key_for_another_request_is_refused",),
    ),
    Guard(
        "a request that is repeated is done twice",
        "recovery_api/services/idempotency.py",
        "    return RememberedAnswer.objects.filter(person_id=person_id, key=key, expires_at__gt=now).first()\n",
        "    return None\n",
        (f"{API}/test_idempotency.py::test_same_key_and_body_is_the_same_answer_byte_for_byte",),
    ),
    Guard(
        "two requests with one key are done side by side",
        "recovery_api/services/idempotency.py",
        "        yield bool(cursor.fetchone()[0])\n",
        "        yield True\n",
        (f"{API}/test_idempotency.py::test_request_in_flight_is_told_to_try_again",),
    ),
)
