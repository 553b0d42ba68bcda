"""What must stay where it is: secrets, values, the product's own database."""

from __future__ import annotations

from tests.guards.guard import Guard

UNIT = "tests/unit"
CREDENTIALS = "workers/connectors/credentials.py"

GUARDS = (
    Guard(
        "any variable of the worker is read as an end's address",
        CREDENTIALS,
        "    if not name.startswith(prefixes_allowed()):\n",
        "    if False:\n",
        (f"{UNIT}/test_credentials.py::test_s1_a_variable_is_resolved_by_its_prefix_only",),
    ),
    Guard(
        "the product's own settings are read as an end's address",
        CREDENTIALS,
        "    if name in OWN_SETTINGS:\n",
        "    if False:\n",
        (f"{UNIT}/test_credentials.py::test_s1_the_products_own_settings_are_never_resolved",),
    ),
    Guard(
        "any file of the worker's machine is read",
        CREDENTIALS,
        "    if not _is_below(path):\n        raise _outside(reference)\n    try:\n",
        "    try:\n",
        (f"{UNIT}/test_credentials.py::test_s8_a_file_is_read_below_an_allowed_folder_only",),
    ),
    Guard(
        "a device or a pipe is read",
        CREDENTIALS,
        "            if not stat.S_ISREG(os.fstat(opened).st_mode):\n",
        "            if False:\n",
        (f"{UNIT}/test_credentials.py::test_s8_only_a_regular_file_of_at_most_64_kib_is_read",),
    ),
    Guard(
        "a file of any size is read",
        CREDENTIALS,
        "    if len(held) > LARGEST_BYTES:\n",
        "    if False:\n",
        (f"{UNIT}/test_credentials.py::test_s8_only_a_regular_file_of_at_most_64_kib_is_read",),
    ),
    Guard(
        "the control database is read as a source",
        "workers/connectors/postgresql/connection.py",
        "            own_database_refuse(connection, address.reference)\n",
        "",
        (
            "tests/integration/security/test_own_database.py::test_s1_an_end_registered_untested_is_refused_when_it_is_used",
        ),
    ),
    Guard(
        "a server's words, which quote values, leave with an error",
        "workers/connectors/postgresql/sqlstates.py",
        "    about = [name for name in dict.fromkeys(names) if name and _is_named(name, said)]\n",
        "    return said\n",
        (f"{UNIT}/test_driver_errors.py::test_only_the_first_line_of_a_servers_message_leaves",),
    ),
    Guard(
        "the words of a refused connection, which quote names, leave with an error",
        "workers/connectors/postgresql/driver_errors.py",
        "        sentence = connecting_sentence_of(str(error))\n",
        "        sentence = str(error)\n",
        (f"{UNIT}/test_driver_errors.py::test_s1_words_without_a_state_choose_the_sentence_and_stay_behind",),
    ),
    Guard(
        "a password stays with the error that is chained",
        "workers/connectors/postgresql/driver_errors.py",
        "        error._pgconn = None\n",
        "        pass\n",
        (f"{UNIT}/test_driver_errors.py::test_the_drivers_exception_is_chained_without_its_connection",),
    ),
    Guard(
        "an unforeseen error is kept with its text",
        "workers/runners.py",
        '    return f"An error that was not foreseen ({kind}{where}). The worker\'s log has it whole."\n',
        '    return f"An error that was not foreseen ({error}). The worker\'s log has it whole."\n',
        (f"{UNIT}/test_values_stay.py::test_s1_an_error_that_was_not_foreseen_is_kept_without_its_text",),
    ),
    Guard(
        "sample rows are seen by others than who asked",
        "recovery_api/domain/samples.py",
        '    if not sample.get("rows") or (asked_by and asked_by == reader):\n',
        "    if True:\n",
        (
            "tests/integration/pages/test_registering.py::"
            "test_s1_sample_rows_are_seen_by_who_asked_masked_until_they_ask_for_more",
        ),
    ),
    Guard(
        "the contents of sample rows are read by others than who asked",
        "recovery_api/services/event_reads.py",
        "    if actor != intent.created_by:\n",
        "    if False:\n",
        (
            "tests/integration/pages/test_registering.py::"
            "test_s1_sample_rows_are_seen_by_who_asked_masked_until_they_ask_for_more",
        ),
    ),
    Guard(
        "the secret of a token is kept for its idempotency key",
        "recovery_api/views/tokens.py",
        '        return json.dumps(row | {"token": None}) if "token" in row else body',
        "        return body",
        ("tests/integration/api/test_idempotency.py::test_secret_of_a_token_is_not_kept_for_its_key",),
    ),
)
