"""A freeze: audits go on, nothing is sent."""

from __future__ import annotations

from tests.guards.guard import Guard

CONTROL = "tests/integration/control/test_freezes.py"
WALK = "tests/integration/recovery/test_frozen.py"
STEERING = "workers/recovery/steering.py"

GUARDS = (
    Guard(
        "a plan is applied while its pipeline is frozen",
        "recovery_api/services/recoveries.py",
        '    frozen_check(pipeline, f"Redriving {pipeline.name}")\n',
        "",
        (f"{CONTROL}::test_a_frozen_pipeline_applies_no_plan_and_drills_no_sink_and_audits",),
    ),
    Guard(
        "a recovery begins while its pipeline is frozen",
        STEERING,
        "        if not is_reading and (freeze := freeze_of(recovery.pipeline_id)) is not None:\n",
        "        if not is_reading and (freeze := None) is not None:\n",
        (f"{WALK}::test_one_that_was_not_begun_claims_nothing",),
    ),
    Guard(
        "a freeze is not looked for once a batch is staged",
        STEERING,
        " or freeze_of(recovery.pipeline_id) is not None:\n        raise Asked",
        ":\n        raise Asked",
        (
            f"{WALK}::test_a_claimed_recovery_sends_nothing_once_frozen",
            f"{WALK}::test_nothing_is_appended_once_frozen",
        ),
    ),
    Guard(
        "what holds for a freeze occupies the workers that audits need",
        "recovery_api/services/intents.py",
        "| ~Exists(standing)",
        "| Q(state=IntentState.QUEUED)",
        (f"{CONTROL}::test_what_holds_waits_without_a_worker_until_it_is_lifted",),
    ),
    Guard(
        "a freeze uses up the attempts of what it holds",
        "workers/runners.py",
        "    if isinstance(error, Frozen):  #",
        "    if False:  #",
        (f"{WALK}::test_a_claimed_recovery_sends_nothing_once_frozen",),
    ),
    Guard(
        "a person who asks a frozen recovery to stop is not heard",
        "recovery_api/services/recoveries.py",
        "                error=None\n            )  # asked for",
        "                woken_at=None\n            )  # asked for",
        (f"{CONTROL}::test_a_stop_is_obeyed_while_everything_is_frozen",),
    ),
)
