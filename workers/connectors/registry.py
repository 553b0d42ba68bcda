"""From a kind's name and options to what does its I/O, loaded by dotted path."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, cast

from recovery_api.domain.errors import Refused
from recovery_api.domain.kinds import Kind, kind_get, options_parse


class Installing(Protocol):
    """A module that puts into an end's own system what its kind needs there."""

    def kit_script(self, parsed: Mapping[str, Any], grants: Iterable[tuple[str, str]], database: str) -> str:
        """What an administrator may run by hand. Connects to nothing."""
        ...

    def kit_put(
        self, parsed: Mapping[str, Any], grants: Iterable[tuple[str, str]], is_upgrade: bool = False
    ) -> dict[str, Any]:
        """Installs or upgrades it in one transaction; what was done."""
        ...

    def database_of(self, reference: str | None) -> str:
        """What a connection reference leads to, for names that depend on it."""
        ...


def connector_make(kind_name: str, options: Mapping[str, Any]) -> Any:
    """A connector of `kind_name`. Raises: UnknownOption, BadInput."""
    kind = kind_get(kind_name)
    module, _, name = kind.connector.rpartition(".")
    return getattr(importlib.import_module(module), name)(options_parse(kind, options))


def installer_of(kind: Kind) -> Installing:
    """What installs for `kind`. Raises: Refused where nothing is installed for it."""
    if kind.installer is None:
        raise Refused(f"installing for a {kind.name}", "nothing is installed for this kind", "Test it as it is.")
    return cast(Installing, importlib.import_module(kind.installer.module))
