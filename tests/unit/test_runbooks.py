"""Runbooks: one for every cause and status, no two alike at first sight, and nothing in one that does not exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command, get_commands, load_command_class

from recovery_api import runbooks
from recovery_api.domain.alerts.causes import Cause
from recovery_api.domain.outcomes import Status
from recovery_api.domain.runbooks import PLACE, commands_of, filled_text, runbook_names, runbook_of

PROJECT = Path(__file__).parents[2]
FOLDER = PROJECT / "docs" / "runbooks"
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.md"))}
VALUES = {"PIPELINE": "mail", "SOURCE": "orders", "SINK": "mail", "PLAN": "0197b2f4-8f3c-7d51-9b1e-2f6f6c1f8d10"}
VALUES |= {"DIGEST": "3f6c", "COORDINATE": "7001:42", "OWNER": "payments"}
COMMANDS = sorted({line for text in TEXTS.values() for line in commands_of(text)})
BUTTON = re.compile(r"\*\*(.+?)\*\*")


def templates() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in (PROJECT / "templates").rglob("*.html"))


def test_every_cause_and_status_has_one_and_there_is_no_other() -> None:
    assert set(TEXTS) == set(runbook_names()) == {*Cause, *Status}
    for name in TEXTS:
        runbook = runbooks.runbook_get(name)
        meaning = runbook.sections["What it means"]
        assert len(re.findall(r"[.:;](?:\s|$)", meaning)) >= 2, name


def test_no_two_say_the_same_first_look() -> None:
    looks: dict[str, str] = {}
    for name in TEXTS:
        for line in runbooks.runbook_get(name).sections["Look at first"].splitlines():
            words = re.sub(r"^\d+\. ", "", line)
            assert words not in looks, (name, looks.get(words))
            looks[words] = name
    assert len(looks) > 2 * len(TEXTS)


def test_each_decision_has_sides_and_says_what_speaks_for_them() -> None:
    for name in TEXTS:
        lines = runbooks.runbook_get(name).sections["Decide"].splitlines()
        assert len(lines) >= 2, name
        assert all(re.match(r"- \*.+?\.\* What speaks for it: .+\.$", line) for line in lines), (name, lines)


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_parses_as_it_is_written(line: str) -> None:
    program, name, *arguments = shlex.split(filled_text(line, VALUES))
    assert program == "manage.py" and name in get_commands(), line
    command = load_command_class(get_commands()[name], name)
    try:
        command.create_parser("manage.py", name).parse_args(arguments)
    except (CommandError, SystemExit) as error:
        pytest.fail(f"{line}: {error}")


def test_every_button_is_one_of_the_pages() -> None:
    pages = templates()
    for name in TEXTS:
        for button in BUTTON.findall(TEXTS[name]):
            assert f'"{button}"' in pages or f">{button}<" in pages or f">{button} " in pages, (name, button)


def test_places_are_those_that_are_filled_in() -> None:
    capitals = {word for text in TEXTS.values() for word in re.findall(r"\b[A-Z]{4,}\b", text)}
    assert capitals - {"NAME", "VALUE", "TRUNCATE", "MAINTAIN", "SELECT", "INFO", "FENCEPOST"} <= set(VALUES)
    assert {found[1] for text in TEXTS.values() for found in PLACE.finditer(text)} == set(VALUES)


def test_no_runbook_speaks_the_protocols_words() -> None:
    spoken = re.compile(r"\b(landed|armed|there already|re-driven|hazard-free|benign|obligations?)\b", re.IGNORECASE)
    assert {name: spoken.findall(text) for name, text in TEXTS.items() if spoken.search(text)} == {}


@pytest.mark.parametrize(("restored", "unsettled", "overdue"), [(1, 1, 1), (0, 1, 1), (0, 0, 1), (0, 0, 0)])
def test_the_first_one_to_open_is_what_keeps_the_rest_from_being_known(
    restored: Any, unsettled: Any, overdue: Any
) -> None:
    found = runbook_of("unknown", is_overdue=overdue, is_restored=restored, is_unsettled=unsettled)
    wanted = ["generation_backwards", "recovery_unsettled", "overdue", "unknown"]
    assert found == wanted[3 - restored - unsettled - overdue]


def test_a_pipelines_values_are_texts_and_nothing_else() -> None:
    evil = "<script>alert(1)</script>**x** `y`; rm -rf /"
    page = runbooks.section_html("PIPELINE\n\n`manage.py plan PIPELINE`", {"PIPELINE": evil})
    assert "<script" not in page and "<strong>" not in page and "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert shlex.quote(evil) == re.search(r"<code>manage.py plan (.*)</code>", page)[1].replace("&lt;", "<").replace(  # type: ignore[index]
        "&gt;", ">"
    )


@pytest.mark.parametrize(
    "evil",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        '<a href="javascript:alert(1)">x</a>',
        "[x](javascript:alert(1))",
        '<style>body{display:none}</style><p style="x">y</p>',
        '<form action="/pipelines/mail/freeze/"><button>Go</button></form>',
        '<iframe src="/"></iframe><svg onload=alert(1)>',
        '<p hx-get="/sign-out/" hx-trigger="load">x</p>',
    ],
)
def test_what_a_team_writes_runs_nothing(tmp_path: Path, settings: Any, evil: str) -> None:
    settings.FENCEPOST_TEAM_RUNBOOKS = str(tmp_path)
    (tmp_path / "owed.md").write_text(f"# Ours\n\nCall **Ada**.\n\n{evil}\n", encoding="utf-8")
    text = runbooks.team_text("owed")
    assert text is not None
    page = runbooks.team_html(text)
    assert "<strong>Ada</strong>" in page
    for word in ("<script", "onerror", "javascript:", "style", "<form", "<button", "<iframe", "<svg", "hx-"):
        assert word not in re.sub(r">[^<]*<", "><", page), page  # text between tags is text
    assert page in runbooks.runbook_page("owed"), "the export has the same"


def test_without_a_database_one_is_printed_and_all_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No fixture of a database here: a query would be refused."""
    call_command("runbook", "owed")
    out = capsys.readouterr().out
    assert out.startswith("# Owed: events never reached the sink") and "manage.py plan PIPELINE --wait" in out
    call_command("runbook", "--export", str(tmp_path / "kept"))
    written = {path.name for path in (tmp_path / "kept").iterdir()}
    assert written == {"index.html", *(f"{name}.{end}" for name in TEXTS for end in ("md", "html"))}
    assert 'href="owed.html"' in (tmp_path / "kept" / "index.html").read_text(encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        call_command("runbook", "owd")
    assert ended.value.code == 2 and "owed" in capsys.readouterr().err


def test_a_name_is_no_path(tmp_path: Path, settings: Any) -> None:
    settings.FENCEPOST_TEAM_RUNBOOKS = str(tmp_path / "kept")
    from recovery_api.domain.errors import NotFound

    for name in ("../secret", "/etc/passwd", "owed/../../x", ""):
        with pytest.raises(NotFound):
            runbooks.team_text(name)
