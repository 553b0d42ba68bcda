"""Sinks without a fence, records alone, presets and archives: what keeps them from saying or doing more than they can."""

from __future__ import annotations

from tests.guards.guard import Guard

RETENTION = "tests/integration/postgresql/test_retention.py"

GUARDS = (
    Guard(
        "a sink without a fence is re-driven without its attestations",
        "recovery_api/services/attestations.py",
        "    if missing:\n",
        "    if False:\n",
        (
            "tests/integration/api/test_incident.py::test_what_must_be_attested_is_listed_in_the_plan_and_given_in_its_words",
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
        "what a library deleted once it was delivered is taken for never committed",
        "workers/connectors/sources/postgresql_outbox.py",
        """            rows_go=self.options["retention"] == Retention.DELETES_DELIVERED,\n""",
        "            rows_go=False,\n",
        (f"{RETENTION}::test_a_source_that_deletes_what_was_delivered_says_that_rows_go",),
    ),
    Guard(
        "a source that purges is taken to have dropped nothing",
        "workers/connectors/sources/postgresql_outbox.py",
        """ if self.options["retention"] == "purges" else None]\n""",
        " if False else None]\n",
        (f"{RETENTION}::test_a_source_that_purges_begins_at_a_floor",),
    ),
    Guard(
        "a record whose rows may go is judged as whole",
        "workers/connectors/sinks/postgresql_table.py",
        """        if self.options["is_append_only"] is False:\n""",
        "        if False:\n",
        (
            "tests/integration/postgresql/test_acceptance_table.py::"
            "test_a_record_not_said_to_be_append_only_makes_every_verdict_unknown",
        ),
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
