"""What is sent to executors is all that a task needs, and what they lack is said in a sentence."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from workers.spark.probing import NEEDED, code_digest, code_files, executor_look
from workers.spark.shipping import ROOT, code_archive, lack_told, lacks_of

FROM_THE_ARCHIVE = """
import sys
sys.path.insert(0, sys.argv[1])
import workers.evidence.ranges, workers.spark.jobs.redrive, workers.spark.jobs.appending, workers.spark.jobs.image
import workers.spark.meet_ids, workers.spark.checking
from workers.connectors.registry import connectors_import
from workers.connectors.sinks.kit import parts_all
from workers.connectors.sinks.kit.releases import releases
connectors_import()
assert sys.argv[1] in workers.evidence.ranges.__file__, workers.evidence.ranges.__file__
assert parts_all() and releases()
assert not [name for name in sys.modules if name.startswith(("django", "celery", "dashboard"))]
print("whole")
"""


def test_the_archive_alone_is_enough_for_every_task(tmp_path: Path) -> None:
    with code_archive().file() as file:
        command = [sys.executable, "-c", FROM_THE_ARCHIVE, str(file)]
        ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={"PATH": ""}, timeout=60)
    assert ran.stdout == "whole\n", ran.stderr


def test_the_archives_name_is_its_contents(tmp_path: Path) -> None:
    archive = code_archive()
    with archive.file() as file, zipfile.ZipFile(file) as opened:
        opened.extractall(tmp_path)
    assert file.name == archive.name and not file.parent.exists(), "nothing is left of it once it was sent"
    assert archive.name == f"fencepost-{code_digest(code_files(str(tmp_path)))}.zip"
    assert executor_look(archive.name)["code"] == "", "another copy of the same code serves as well"
    (tmp_path / "workers" / "faults.py").write_text("another = 1\n")
    assert archive.name != f"fencepost-{code_digest(code_files(str(tmp_path)))}.zip"
    assert str(ROOT) in executor_look("fencepost-of-another.zip")["code"]


def test_what_executors_lack_is_a_sentence_each_with_its_hosts() -> None:
    look = executor_look(code_archive().name)
    assert lacks_of([look]) == []
    package = {"version": "", "problem": "ModuleNotFoundError: No module named 'orjson'"}
    broken = {"version": "", "problem": "ImportError: libpq.so.5 is not there"}
    poor = {**look, "host": "b", "packages": {**look["packages"], "orjson": package, "psycopg": broken}}
    old = {**look, "host": "a", "python": "3.8.18", "code": "it is not there"}
    said = lacks_of([poor, {**poor, "host": "c"}, old])
    assert len(said) == 4
    assert any("lacks the package orjson: install it where Spark's Python runs (b, c)." in one for one in said)
    assert any("lacks the package psycopg (ImportError: libpq.so.5 is not there)" in one for one in said)
    assert any(one.startswith("An executor runs Python 3.8.18, and this is Python ") for one in said)
    assert any("has not our code, though it was sent (it is not there)" in one for one in said)
    assert set(look["packages"]) == set(NEEDED)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("…ModuleNotFoundError: No module named 'workers'\n\tat", "An executor has not our code"),
        ("ModuleNotFoundError: No module named 'recovery_api.domain'", "An executor has not our code"),
        ("ModuleNotFoundError: No module named 'pyarrow.lib'", "lacks the package pyarrow: install it"),
        (
            "[PACKAGE_NOT_INSTALLED] PyArrow >= 15.0.0 must be installed; however, it was not",
            "lacks the package pyarrow",
        ),
        ('java.io.IOException: Cannot run program "python3": error=2', "there is no python3 on it"),
        ("[DIVIDE_BY_ZERO] Division by zero", ""),
    ],
)
def test_a_job_that_died_of_what_is_lacking_is_read(text: str, says: str) -> None:
    said = lack_told(text)
    assert says in said and bool(said) == bool(says)
