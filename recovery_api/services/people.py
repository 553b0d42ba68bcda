"""People and their roles. Who a person is stays Django's; what they may do is the groups they are in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction

from recovery_api.domain.access import Role
from recovery_api.domain.errors import BadInput


def roles_make() -> list[str]:
    """The roles' names, each a group from now on."""
    for role in Role:
        Group.objects.get_or_create(name=role.value)
    return [role.value for role in Role]


def person_create(name: str, password: str, roles: Sequence[str] = ()) -> Any:
    """The person, who may sign in. Without `roles` they may do everything, and make the other people in /admin/.

    Raises: BadInput for a name that is taken or cannot be one, a password that is too weak, a role that is none.
    """
    for role in roles:
        if role not in list(Role):
            raise BadInput("--role", f"{role!r} is no role", f"One of: {', '.join(Role)}.")
    model = get_user_model()
    person = model(username=name, is_staff=not roles, is_superuser=not roles)
    _checked("name", lambda: person.clean_fields(exclude=["password"]), "Use letters, digits and @ . + - _ only.")
    if model.objects.filter(username=name).exists():
        raise BadInput("name", f"{name!r} is taken", "Choose another.")
    _checked("password", lambda: validate_password(password, person), "Choose another.")
    person.set_password(password)
    with transaction.atomic():
        roles_make()
        person.save()
        person.groups.set(Group.objects.filter(name__in=roles))
    return person


def _checked(field: str, check: Any, remedy: str) -> None:
    try:
        check()
    except ValidationError as error:
        says = " ".join(message.rstrip(".") + "." for message in error.messages)
        raise BadInput(field, f"cannot be used. {says}", remedy) from error
