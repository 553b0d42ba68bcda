"""From a kind's name and options to the connector that does its I/O, loaded by dotted path."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from recovery_api.domain.kinds import kind_get, options_parse


def connector_make(kind_name: str, options: Mapping[str, Any]) -> Any:
    """A connector of `kind_name`. Raises: UnknownOption, BadInput."""
    kind = kind_get(kind_name)
    module, _, name = kind.connector.rpartition(".")
    return getattr(importlib.import_module(module), name)(options_parse(kind, options))
