"""A bench a kind: how a contract suite makes an end of it and puts rows there. One module a kind, by the kind's name.

`MAKES`: by variant ("" is the kind as it is made today) what makes its bench in a Place. `EXAMPLES`: where the kind's
own example does not show each of its abilities, options that together do. `CANNOT`: by test, why the kind cannot; such a
test is expected to fail, strictly.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from recovery_api.domain.abilities import Ability
from recovery_api.domain.frontiers import SINGLE_LANE
from recovery_api.domain.kinds.base import KINDS, Kind, kind_get
from workers.connectors.protocols.appended import AppendedDelivery
from workers.connectors.protocols.delivery import Delivery
from workers.connectors.protocols.record import FollowedRecord, IdRecord, Record
from workers.connectors.protocols.source import Source
from workers.connectors.readings import CoordinateRange, Width


@dataclass
class Place:
    """What a bench may use: a folder of its own, and the suite's database, made when it is first asked for."""

    folder: Path
    database: Callable[[], str]


class SourceBench(Protocol):
    def connector(self) -> Source:
        """Another connector of the same end, as another process would make it."""
        ...

    def commit(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Events of schemas.BATCH are committed, all at once, in this order."""
        ...


class ChangeableBench(SourceBench, Protocol):
    def alter(self, events: Iterable[Mapping[str, Any]]) -> None:
        """What was committed at these coordinates is these events now, though nobody should."""
        ...


class RecordBench(Protocol):
    def connector(self) -> Record: ...

    def accept(self, events: Iterable[Mapping[str, Any]], head: int | None = None) -> None:
        """Events of schemas.BATCH are accepted in this order, all under one head."""
        ...


class OpenTransaction(Protocol):
    def accept(self, events: Iterable[Mapping[str, Any]]) -> None: ...

    def savepoint(self) -> AbstractContextManager[Any]:
        """What is accepted while it is open is rolled back alone where it ends with an exception."""
        ...


class FollowedBench(RecordBench, Protocol):
    def connector(self) -> FollowedRecord: ...

    def transaction(self) -> AbstractContextManager[OpenTransaction]:
        """A relay's transaction: in the record when the manager closes, and rolled back where it does with an exception."""
        ...


class ScannedBench(Protocol):
    def scanned(self, ids: Iterable[str] = ()) -> IdRecord:
        """A record of ids that holds these; asked again, another connector of the same, which got these besides."""
        ...


class DeliveryBench(Protocol):
    kind: str
    options: Mapping[str, Any]
    """Of what `delivery` gives, once it was asked."""

    def delivery(self) -> Delivery:
        """A delivery into an empty place; asked again, another connector of the same."""
        ...


class AppendedBench(DeliveryBench, Protocol):
    def delivery(self) -> AppendedDelivery: ...

    def held(self) -> dict[int, bytes]:
        """What arrived there: by position, the payload's digest."""
        ...


KINDS_OF_TESTS = {"delivery_alone": "tests.contract.delivery_alone"}
"""Kinds that the product has none of yet, so that what it says of them is tried. They are registered while a contract
test runs (conftest.py)."""
KINDS_OURS = [name for name, module in KINDS.items() if module.startswith("recovery_api.")]
"""The product's own; tests register others beside them."""
KINDS_TRIED = [*KINDS_OURS, *KINDS_OF_TESTS]


def kind_tried(name: str) -> Kind:
    """The kind, whether it is registered now or not."""
    if name in KINDS_OF_TESTS:
        kind: Kind = importlib.import_module(KINDS_OF_TESTS[name]).KIND
        return kind
    return kind_get(name)


def kinds_with(*abilities: Ability) -> list[str]:
    """The kinds that declare one of these."""
    return [name for name in KINDS_TRIED if kind_tried(name).abilities & set(abilities)]


def record_held(record: Record) -> dict[int, bytes]:
    """What a record of one lane shows now: by position, the payload's digest."""
    with record.hold_snapshot() as reading:
        found = record.read_accepted(reading, CoordinateRange(SINGLE_LANE, None, None), Width.PAYLOAD)
        return {row["position"]: row["payload_digest"] for batch in found for row in batch.to_pylist()}


def module_of(kind: str) -> Any:
    return importlib.import_module(f"{__name__}.{kind}")


def params(*abilities: Ability, is_newest: bool = False) -> list[Any]:
    """A parameter a kind and variant, or only as the kind is made today. A kind without a bench has one, too: its tests
    fail."""
    found = []
    for kind in kinds_with(*abilities):
        try:
            variants = [variant for variant in module_of(kind).MAKES if not (is_newest and variant)]
        except ModuleNotFoundError:
            variants = [""]
        found += [pytest.param((kind, variant), id=f"{kind} {variant}".strip()) for variant in variants]
    return found


def bench_of(request: pytest.FixtureRequest, place: Place) -> Any:
    """The bench that the fixture's parameter names. A test that the kind cannot pass is marked so."""
    kind, variant = request.param
    module = module_of(kind)
    name = request.node.originalname
    if name in module.CANNOT:
        request.applymarker(pytest.mark.xfail(strict=True, reason=module.CANNOT[name]))
    return module.MAKES[variant](place)
