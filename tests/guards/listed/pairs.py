"""A record and a delivery that are two ends: never fired into, and each counts for what it is."""

from __future__ import annotations

from tests.guards.guard import Guard

SERVICES = "recovery_api/services"
PAIRS = "tests/integration/control/test_pairs.py"
DELIVERY = "tests/contract/delivery/test_delivery.py"
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
    Guard(
        "a pipeline is judged by a sink that cannot be read back",
        f"{SERVICES}/pipelines.py",
        "    if not abilities_of(sink.kind, sink.options) & RECORDS:\n",
        "    if False:\n",
        (f"{PAIRS}::test_a_delivery_alone_is_no_record_and_may_be_a_delivery",),
    ),
    Guard(
        "a delivery alone is opened as a record",
        "workers/connectors/registry.py",
        "    if not abilities_of(kind_name, options) & RECORDS:\n",
        "    if False:\n",
        (f"{DELIVERY}::test_its_record_is_made_where_it_has_one_and_refused_in_words_where_not",),
    ),
    Guard(
        "another delivery is taken unchecked",
        f"{SERVICES}/pipelines.py",
        "        _sinks_check(locked.sink, delivery and Sink.objects.get(pk=delivery.pk))\n",
        "",
        (f"{PAIRS}::test_another_delivery_is_checked_as_at_registration",),
    ),
    Guard(
        "a delivery that serves another pipeline is taken",
        f"{SERVICES}/pipelines.py",
        "        _free_check(action, locked.sink, delivery, locked)\n",
        "",
        (f"{PAIRS}::test_another_delivery_is_checked_as_at_registration",),
    ),
    Guard(
        "a plan for the delivery of before outlives it",
        f"{SERVICES}/pipelines.py",
        "        plans_lapse(locked, because=says, actor=actor, now=now)\n",
        "",
        (f"{PAIRS}::test_another_delivery_lapses_what_waits_says_why_and_voids_no_audit",),
    ),
    Guard(
        "a plan that was computed for the delivery of before waits to be applied",
        f"{SERVICES}/plans.py",
        "        is_changed = _read_as(pipeline) != _read_as(plan.pipeline)\n",
        "        is_changed = False\n",
        (f"{PAIRS}::test_a_plan_that_is_computed_while_the_delivery_changes_is_recorded_as_lapsed",),
    ),
    Guard(
        "a delivery is changed under a recovery that begins meanwhile",
        f"{SERVICES}/pipelines.py",
        "        _hold_sinks(action, pipeline.sink, delivery)  # as",
        "        # as",
        (f"{PAIRS}::test_nothing_is_changed_under_a_recovery_that_begins_meanwhile",),
    ),
    Guard(
        "an end is changed under a recovery that begins meanwhile",
        f"{SERVICES}/ends.py",
        "        unfinished_refuse(action, pipelines)  # again",
        "        # again",
        (f"{PAIRS}::test_nothing_is_changed_under_a_recovery_that_begins_meanwhile",),
    ),
)
