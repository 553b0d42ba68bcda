"""Who a signed-in person is to this product: the roles their groups give them."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model

from recovery_api.domain.access import Role


def people_exist() -> bool:
    """Whether anybody can sign in at all. False: the first run is not finished (`manage.py setup`)."""
    return bool(get_user_model().objects.exists())


def roles_of(user: Any) -> frozenset[str] | None:
    """The roles of a Django user: the groups named like one; all of them for a superuser. None: nobody is signed in."""
    if not user.is_authenticated or not user.is_active:
        return None
    every = frozenset(role.value for role in Role)
    if user.is_superuser:
        return every
    return every & set(user.groups.values_list("name", flat=True))
