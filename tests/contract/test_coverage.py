"""No kind escapes a suite: each declares what it can, has a bench, and its connector is what it declares."""

from __future__ import annotations

import importlib
import importlib.util

import pytest

from recovery_api.domain.abilities import DELIVERIES, READINGS, RECORDS, Ability
from recovery_api.domain.kinds import abilities_of
from tests.contract.benches import KINDS_TRIED, kind_tried, module_of
from workers.connectors.protocols.appended import AppendedDelivery
from workers.connectors.protocols.fence import DrillableDelivery, FencedDelivery
from workers.connectors.protocols.image import ImageSource, StateRecord
from workers.connectors.protocols.record import FollowedRecord, IdRecord, OrderedRecord, Record
from workers.connectors.protocols.source import ImmutableSource, Source
from workers.connectors.registry import sink_make, source_make

PROTOCOLS = {
    Ability.JOINED_SNAPSHOT: Source,
    Ability.IMMUTABLE_BELOW: ImmutableSource,
    Ability.RECORD_BY_RANGE: Record,
    Ability.RECORD_BY_SCAN: IdRecord,
    Ability.FOLLOWED: FollowedRecord,
    Ability.ORDERED_EFFECT: OrderedRecord,
    Ability.STATE: StateRecord,
    Ability.COMMITTED_STATE: ImageSource,
    Ability.FENCED: FencedDelivery,
    Ability.APPENDED: AppendedDelivery,
    Ability.DRILLED: DrillableDelivery,
}
SUITES = {
    "source.test_source": READINGS,
    "record.test_record": {Ability.RECORD_BY_RANGE},
    "record.test_scanned": {Ability.RECORD_BY_SCAN},
    "record.test_followed": {Ability.FOLLOWED},
    "delivery.test_delivery": DELIVERIES,
    **{f"{ability.value}.test_{ability.value}": {ability} for ability in sorted(DELIVERIES)},
}


def test_every_ability_has_its_protocol() -> None:
    assert set(PROTOCOLS) == set(Ability)


@pytest.mark.parametrize("kind", KINDS_TRIED)
def test_every_kind_has_a_bench(kind: str) -> None:
    module = module_of(kind)
    assert "" in module.MAKES
    assert all(reason for reason in module.CANNOT.values())


@pytest.mark.parametrize("kind", KINDS_TRIED)
def test_every_kind_declares_how_it_is_read(kind: str) -> None:
    found = kind_tried(kind)
    assert found.abilities & (READINGS if found.end == "source" else RECORDS | DELIVERIES)
    assert not found.abilities & (RECORDS | DELIVERIES if found.end == "source" else READINGS)


@pytest.mark.parametrize("kind", KINDS_TRIED)
def test_every_connector_has_what_its_kind_declares_and_no_more(kind: str) -> None:
    found = kind_tried(kind)
    make = source_make if found.end == "source" else sink_make
    shown: set[Ability] = set()
    for options in getattr(module_of(kind), "EXAMPLES", [found.example or {"name": "example"}]):
        connector, declared = make(kind, options), abilities_of(kind, options)  # it opens nothing until it is asked
        shown |= declared
        for ability, protocol in PROTOCOLS.items():
            methods = {name for name in dir(protocol) if not name.startswith("_") and callable(getattr(protocol, name))}
            missing = sorted(name for name in methods if not hasattr(connector, name))
            if ability in declared:
                assert not missing, f"{kind} declares {ability.value} and lacks {missing}"
            elif ability not in found.abilities:
                is_common = protocol in (Source, Record)
                assert missing or is_common, f"{kind} has all of {ability.value} and does not declare it"
    assert shown == found.abilities, "EXAMPLES show each ability once at least"


@pytest.mark.parametrize(("suite", "abilities"), SUITES.items())
def test_every_declared_ability_has_a_suite(suite: str, abilities: set[Ability]) -> None:
    if any(kind_tried(kind).abilities & abilities for kind in KINDS_TRIED):
        assert importlib.util.find_spec(f"tests.contract.{suite}") is not None


def test_every_expected_failure_names_a_test() -> None:
    names: set[str] = set()
    for suite in SUITES:
        if importlib.util.find_spec(f"tests.contract.{suite}") is not None:
            names |= set(dir(importlib.import_module(f"tests.contract.{suite}")))
    assert {test for kind in KINDS_TRIED for test in module_of(kind).CANNOT} <= names
