"""What is shown: to browsers, terminals, and whoever reads the timeline."""

from __future__ import annotations

from tests.guards.guard import Guard

PAGES = "tests/integration/pages"
SECURITY = "tests/integration/security"
PLANS_FILE = (
    f"{PAGES}/test_plan_pages.py::test_the_batch_is_a_file_with_names_and_no_formula_that_is_read_again_as_it_was"
)

GUARDS = (
    Guard(
        "a script in a name or a sentence runs",
        "dashboard/settings.py",
        '        "OPTIONS": {\n            "context_processors": [\n',
        '        "OPTIONS": {\n            "autoescape": False,\n            "context_processors": [\n',
        (f"{PAGES}/test_incident_pages.py::test_script_in_names_keys_and_sentences_is_shown_as_text",),
    ),
    Guard(
        "a script in a key runs",
        "templates/plans/plan.html",
        "{{ sample.key|truncatechars:120 }}",
        "{{ sample.key|safe|truncatechars:120 }}",
        (f"{PAGES}/test_incident_pages.py::test_script_in_names_keys_and_sentences_is_shown_as_text",),
    ),
    Guard(
        "a key in a file of a plan is a formula in a spreadsheet",
        "dashboard/views/plans.py",
        '[cell_write(row[name] or "") for name',
        '[(row[name] or "") for name',
        (PLANS_FILE,),
    ),
    Guard(
        "a file of a plan names other events where it is read again",
        "recovery_api/domain/dead_letters.py",
        "held = map(cell_read, cells) if set(header) >= OURS else cells",
        "held = cells",
        (PLANS_FILE,),
    ),
    Guard(
        "pages run scripts of their own text",
        "dashboard/settings.py",
        '    "csp.middleware.CSPMiddleware",\n',
        "",
        (f"{SECURITY}/test_people.py::test_every_answer_carries_the_headers_that_protect",),
    ),
    Guard(
        "pages are framed by other sites",
        "dashboard/settings.py",
        '    "django.middleware.clickjacking.XFrameOptionsMiddleware",\n',
        "",
        (f"{SECURITY}/test_people.py::test_every_answer_carries_the_headers_that_protect",),
    ),
    Guard(
        "characters that act on their reader reach a page",
        "dashboard/acting_characters.py",
        "        if ACTING.search(text):\n",
        "        if False:\n",
        (f"{SECURITY}/test_people.py::test_s12_characters_that_act_are_shown_on_pages_and_terminal",),
    ),
    Guard(
        "refusals fill the timeline",
        "recovery_api/services/refusals.py",
        "    if counted.update(**step):\n        return\n",
        "    counted.delete()\n",
        (f"{SECURITY}/test_people.py::test_s13_refusals_are_one_event_an_hour_and_person",),
    ),
    Guard(
        "withdrawn work leaves its plan waiting",
        "recovery_api/services/intents.py",
        '        _tell_what_it_was_for(intent, {"code": "cancelled", "text": says}, now, actor=actor)\n',
        "",
        (f"{SECURITY}/test_role_matrix.py::test_s7_a_plan_whose_work_is_withdrawn_is_refused_on_either_face",),
    ),
    Guard(
        "several pipelines exit as the best of them",
        "recovery_api/domain/outcomes.py",
        "    return min(codes, key=EXIT_WORST_FIRST.index, default=EXIT_DONE)\n",
        "    return min(codes, default=EXIT_DONE)\n",
        ("tests/integration/control/test_commands.py::test_t5_several_pipelines_exit_as_the_worst_of_them",),
    ),
    Guard(
        "a certificate that was tampered with is shown as whole",
        "dashboard/views/certificates.py",
        '            "is_intact": _digest(certificate) == recovery.certificate_digest,\n',
        '            "is_intact": True,\n',
        (
            f"{PAGES}/test_recovery_pages.py::"
            "test_certificate_is_a_page_and_a_file_and_says_when_it_is_void_or_tampered_with",
        ),
    ),
)
