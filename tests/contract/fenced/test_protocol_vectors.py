"""The conformance cases of the sink protocol, step by step, against every fenced sink kind's real admission path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.contract.sink_engines import KitEngine, MemoryEngine, batch_make, kit_engine_open
from tests.contract.verdict_cases import cases_read
from workers.connectors.sinks.kit import KIT_VERSION
from workers.connectors.sinks.kit.releases import Release, releases

FILES = ["sink_protocol.json", "sink_protocol_random.json"]

Engine = MemoryEngine | KitEngine


@pytest.fixture(scope="module")
def kit_engine(lasting_database_factory: Callable[[str], str]) -> Iterator[KitEngine]:
    with kit_engine_open(lasting_database_factory("conformance")) as engine:
        yield engine


@pytest.fixture(scope="module")
def upgraded_dsn(lasting_database_factory: Callable[[str], str]) -> str:
    return lasting_database_factory("upgraded")


@pytest.mark.parametrize("name", FILES)
def test_memory_sink_gives_the_answers_of_every_case(name: str) -> None:
    assert not _failures(name, MemoryEngine)


@pytest.mark.parametrize("name", FILES)
def test_kit_gives_the_answers_of_every_case(name: str, kit_engine: KitEngine) -> None:
    assert not _failures(name, kit_engine)


@pytest.mark.slow
@pytest.mark.parametrize("release", [r for r in releases() if r.version < KIT_VERSION], ids=lambda r: r.name)
def test_r7_upgraded_kit_gives_the_answers_of_every_case(release: Release, upgraded_dsn: str) -> None:
    """From every text that was ever installed; of the random cases a part each, all of them in all."""
    with kit_engine_open(upgraded_dsn, release) as engine:
        earlier = [one.name for one in releases() if one.version < KIT_VERSION]
        part = (earlier.index(release.name), len(earlier))
        assert not _failures(FILES[0], engine)
        assert not _failures(FILES[1], engine, part)


def _failures(name: str, make: Callable[[int], Engine], part: tuple[int, int] = (0, 1)) -> list[str]:
    """What differs; `part`: which of how many equal parts of the cases."""
    failures = []
    for case in list(cases_read(name))[part[0] :: part[1]]:
        engine = make(max((step.get("generation", 0) for step in case["steps"]), default=0))
        found = _run(engine, case["steps"])
        expected = (case["expect"]["results"], case["expect"]["accepted"], case["expect"]["fence"])
        for what, got, wanted in zip(("results", "accepted", "fence"), found, expected, strict=True):
            if got != wanted:
                failures.append(f"{case['id']}: {what} {got}, expected {wanted}")
    return failures


def _run(engine: Engine, steps: list[dict[str, Any]]) -> tuple[list[Any], list[list[int]], int]:
    committed: list[int] = []
    arms: dict[int, int] = {}
    results: list[Any] = []
    for step in steps:
        generation = step.get("generation", 0)
        match step["do"]:
            case "commit":
                committed.append(step["coordinate"])
                results.append("committed")
            case "begin":
                results.append(engine.begin(generation))
            case "deliver":
                results.append(engine.deliver(generation, step["coordinate"]))
            case "claim":
                results.append(engine.claim(generation))
            case "arm":
                held = {coordinate for coordinate, _ in engine.accepted()}
                owed = sorted(set(committed) - held)
                owed = [coordinate for coordinate in owed if coordinate <= step["frontier"]]
                word, arm = engine.arm(generation, batch_make(*owed))
                if arm is not None:
                    arms[generation] = arm
                    engine.stage(generation, arm, batch_make(*owed))
                results.append({"batch": owed} if word == "armed" else word)
            case "fire":
                before = engine.accepted()
                word = engine.fire(generation, arms.get(generation, 1))
                landed = [coordinate for coordinate, _ in engine.accepted()[len(before) :]]
                results.append({"landed": landed} if word == "landed" else word)
            case "crash_in_fire":
                engine.crash_in_fire(generation, arms.get(generation, 1))
                results.append("nothing landed")
            case other:
                raise AssertionError(f"the cases have a step this harness does not know: {other}")
    return results, engine.accepted(), engine.fence()
