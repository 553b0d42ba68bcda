"""Roles and what they may do, as a table."""

from __future__ import annotations

import pytest

from recovery_api.domain.access import PERMISSIONS_OF, ROUTES, Permission, Role, is_allowed, permissions_of, who_may


def test_a_route_that_is_not_in_the_table_is_refused_to_everybody():
    assert not is_allowed("no-such-route", "GET", [role.value for role in Role])


@pytest.mark.parametrize("route,method", ROUTES)
def test_nobody_who_is_not_signed_in_gets_past_sign_in(route, method):
    assert is_allowed(route, method, None) is (ROUTES[route, method] == Permission.ANYONE)


def test_the_one_who_configures_does_not_approve():
    assert not permissions_of(["admin"]) & {Permission.APPROVE, Permission.APPLY}
    assert Permission.CONFIGURE not in permissions_of(["approver"])


def test_an_approver_may_what_an_operator_may_and_everybody_sees():
    assert PERMISSIONS_OF[Role.OPERATOR] < PERMISSIONS_OF[Role.APPROVER]
    assert all(Permission.SEE in granted for granted in PERMISSIONS_OF.values())


def test_a_name_that_is_no_role_adds_nothing():
    assert permissions_of(["root", ""]) == frozenset()
    assert permissions_of([]) == frozenset()


def test_a_refusal_can_name_whom_to_ask():
    assert who_may(Permission.APPROVE) == (Role.APPROVER,)
