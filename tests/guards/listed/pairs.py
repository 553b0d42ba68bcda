"""A record and a delivery that are two ends: never fired into, and each counts for what it is."""

from __future__ import annotations

from tests.guards.guard import Guard

SERVICES = "recovery_api/services"
PAIRS = "tests/integration/control/test_pairs.py"
UNIT = "tests/unit/test_capabilities.py"

GUARDS = (
    Guard(
        "two ends are fired into as one",
        "recovery_api/domain/capabilities.py",
        "    return Capability(\n        archetype=archetype_weaker(Archetype.QUERYABLE, record.archetype),\n",
        "    return delivery or record\n    return Capability(\n        archetype=archetype_weaker(Archetype.QUERYABLE, record.archetype),\n",
        (f"{UNIT}::test_two_ends_are_never_fired_into_and_say_why",),
    ),
    Guard(
        "one pipeline's record is another's delivery",
        f"{SERVICES}/pipelines.py",
        "Q(sink=end) | Q(delivery=end)",
        "Q(sink=end)",
        (f"{PAIRS}::test_a_sink_serves_one_pipeline_in_one_part",),
    ),
)
