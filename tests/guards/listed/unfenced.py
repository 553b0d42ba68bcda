"""Sinks without a fence, records alone, presets and archives: what keeps them from saying or doing more than they can."""

from __future__ import annotations

from tests.guards.guard import Guard

ATTESTED = "workers/recovery/strategies/attested.py"
ATTESTED_TESTS = "tests/integration/recovery/test_attested.py"

GUARDS = (
    Guard(
        "a part is appended to a sink that was restored or replaced",
        ATTESTED,
        "        sink_check(self.recovery.pipeline)\n        self._can_append",
        "        self._can_append",
        (f"{ATTESTED_TESTS}::test_nothing_is_appended_to_a_table_that_was_made_anew_since_the_plan",),
    ),
    Guard(
        "a unique constraint is relied on after it is gone",
        ATTESTED,
        "        if capability.absorbs_late_sends or RELAY_DRAINED in names:\n",
        "        if True:\n",
        (f"{ATTESTED_TESTS}::test_a_constraint_that_is_gone_by_then_is_not_relied_on",),
    ),
    Guard(
        "a sink without a fence is re-driven without its attestations",
        "recovery_api/services/attestations.py",
        "    if missing:\n",
        "    if False:\n",
        (f"{ATTESTED_TESTS}::test_without_a_unique_constraint_a_late_send_must_be_attested_away",),
    ),
    Guard(
        "a record alone is handed out as a delivery",
        "workers/connectors/registry.py",
        "    if not abilities & DELIVERIES:\n",
        "    if False:\n",
        (
            "tests/integration/recovery/test_record_alone.py::"
            "test_whoever_asks_a_record_alone_for_a_delivery_is_refused_in_words",
        ),
    ),
    Guard(
        "a sink without a counter is not found restored",
        "recovery_api/domain/restores.py",
        "    if remembered.incarnation and said.incarnation and said.incarnation != remembered.incarnation:\n",
        "    if False:\n",
        ("tests/unit/test_restores.py::test_sink_without_a_counter_is_known_by_its_incarnation_alone",),
    ),
    Guard(
        "an archive outside the allowed folders is read",
        "workers/connectors/folders.py",
        "not any(path.is_relative_to(folder.resolve()) for folder in allowed)",
        "False",
        ("tests/unit/test_folders.py::test_nothing_else_is_read",),
    ),
    Guard(
        "an archive that changed below its frontier is taken for immutable",
        "workers/connectors/sources/archive_files.py",
        "            if now != then:\n",
        "            if False:\n",
        ("tests/contract/source/test_source.py::test_what_changed_below_the_frontier_was_not_immutable",),
    ),
    Guard(
        "a preset overrides what was given",
        "recovery_api/services/presets.py",
        "{**given, **filled, OPTION: name}",
        "{**given, **preset.options, OPTION: name}",
        ("tests/unit/test_presets.py::test_options_that_are_given_win_and_the_rest_is_filled_and_told",),
    ),
    Guard(
        "a preset that cannot serve is filled all the same",
        "recovery_api/presets/__init__.py",
        "    if preset.answer is Answer.REFUSED:\n",
        "    if False:\n",
        ("tests/unit/test_presets.py::test_a_preset_that_cannot_serve_is_refused_with_what_to_do",),
    ),
)
