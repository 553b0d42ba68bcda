"""From a kind's name and options to the connector that does its I/O, loaded by dotted path, as what is asked of it.

Who asks for an ability that the kind does not declare gets a refusal to read, and never a connector without it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Protocol, cast, overload

from recovery_api.domain.abilities import DELIVERIES, RECORDS, Ability
from recovery_api.domain.errors import Refused
from recovery_api.domain.kinds import Kind, abilities_of, kind_get, kinds_offered, options_parse
from workers.connectors.protocols.appended import AppendedDelivery
from workers.connectors.protocols.delivery import Delivery
from workers.connectors.protocols.fence import DrillableDelivery, FencedDelivery
from workers.connectors.protocols.record import Record
from workers.connectors.protocols.sink import AnySink
from workers.connectors.protocols.source import Source


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


def source_make(kind_name: str, options: Mapping[str, Any]) -> Source:
    """A source of `kind_name`. Raises: UnknownOption, BadInput; Refused for a kind of sink."""
    return cast(Source, _make(_kind(kind_name, "source"), options))


def sink_make(kind_name: str, options: Mapping[str, Any]) -> AnySink:
    """A sink of `kind_name`, to be tested: record, delivery or both. Raises: UnknownOption, BadInput; Refused for a kind
    of source."""
    return cast(AnySink, _make(_kind(kind_name, "sink"), options))


def record_make(kind_name: str, options: Mapping[str, Any]) -> Record:
    """The acceptance record of a sink of `kind_name`.

    Raises: UnknownOption, BadInput; Refused for a kind of source, and where the kind is a delivery alone.
    """
    kind = _kind(kind_name, "sink")
    if not abilities_of(kind_name, options) & RECORDS:
        raise Refused(
            f"Reading what a sink of kind {kind.name} accepted",
            "it is a delivery alone: what arrives there cannot be read back",
            "Ask the sink that is the pipeline's record.",
        )
    return cast(Record, _make(kind, options))


@overload
def delivery_make(kind_name: str, options: Mapping[str, Any]) -> Delivery: ...
@overload
def delivery_make(kind_name: str, options: Mapping[str, Any], ability: Literal[Ability.FENCED]) -> FencedDelivery: ...
@overload
def delivery_make(
    kind_name: str, options: Mapping[str, Any], ability: Literal[Ability.APPENDED]
) -> AppendedDelivery: ...
@overload
def delivery_make(
    kind_name: str, options: Mapping[str, Any], ability: Literal[Ability.DRILLED]
) -> DrillableDelivery: ...
def delivery_make(kind_name: str, options: Mapping[str, Any], ability: Ability | None = None) -> Delivery:
    """The delivery into a sink of `kind_name`, with `ability` where one is asked for.

    Raises: UnknownOption, BadInput; Refused where the kind is a record alone, or has another ability.
    """
    kind = _kind(kind_name, "sink")
    abilities = abilities_of(kind_name, options)
    if not abilities & DELIVERIES:
        raise Refused(
            f"Sending to a sink of kind {kind.name}",
            "it is a record alone: a row in it is the mark of an effect, and not the effect",
            "Audit and plan with it; what is owed goes through the system that has the effect.",
        )
    if ability is not None and ability not in abilities:
        has = " and ".join(sorted(abilities & DELIVERIES))
        raise Refused(f"Sending to a sink of kind {kind.name}", f"it is {has} and not {ability.value}", "Plan again.")
    return cast(Delivery, _make(kind, options))


def delivery_find(kind_name: str, options: Mapping[str, Any]) -> Delivery | None:
    """The delivery into the sink. None: it is a record alone. Raises: UnknownOption, BadInput."""
    return delivery_make(kind_name, options) if abilities_of(kind_name, options) & DELIVERIES else None


def _kind(kind_name: str, end: str) -> Kind:
    kind = kind_get(kind_name)
    if kind.end != end:
        raise Refused(f"Using {kind.name} as a {end}", f"it is a kind of {kind.end}", f"Register a {end}.")
    return kind


def connectors_import() -> None:
    """Imports every kind's connector now, for a process whose forks will need one of them."""
    for kind in (*kinds_offered("source"), *kinds_offered("sink")):
        importlib.import_module(kind.connector.rpartition(".")[0])


def _make(kind: Kind, options: Mapping[str, Any]) -> object:
    module, _, name = kind.connector.rpartition(".")
    made: object = getattr(importlib.import_module(module), name)(options_parse(kind, options))
    return made


def installer_of(kind: Kind) -> Installing:
    """What installs for `kind`. Raises: Refused where nothing is installed for it."""
    if kind.installer is None:
        raise Refused(f"installing for a {kind.name}", "nothing is installed for this kind", "Test it as it is.")
    return cast(Installing, importlib.import_module(kind.installer.module))
