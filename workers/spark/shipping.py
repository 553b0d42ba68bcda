"""Our code on executors: an archive of what tasks import, added to each session of an engine that is not started by us.

The law: the archive's name is its content's, since an engine refuses other content under a name that it has; and before the
first job somebody looked (workers.spark.probing) whether each executor can do it at all.
"""

from __future__ import annotations

import io
import json
import os
import re
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from platform import python_version
from typing import TYPE_CHECKING, Any

from recovery_api.domain.errors import EngineLacks
from workers.spark.probing import code_digest, code_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OWN_ENGINE = "FENCEPOST_OWN_ENGINE"
"""Holds the address of the engine that `workers.embedded` started for this process."""
ROOT = Path(__file__).resolve().parents[2]
OWN_PACKAGES = ("workers", "recovery_api")
LOOKS = 16
"""Tasks of the look: each waits a moment, so that they reach every executor of a small engine, and most of a large one."""
WAIT_SECONDS = 0.1
EPOCH = (2020, 1, 1, 0, 0, 0)


def is_own_engine() -> bool:
    """Whether the engine was started by us: its executors run in this working copy."""
    remote = os.environ.get("SPARK_REMOTE", "")
    return bool(remote) and os.environ.get(OWN_ENGINE) == remote


def session_prepare(session: SparkSession) -> None:
    """Adds our code to a new session of another's engine, and looks at its executors.

    Raises: EngineLacks with what they lack, in sentences.
    """
    if is_own_engine():
        return
    with code_archive().file() as file:
        session.addArtifacts(str(file), pyfile=True)
    if said := lacks_of(executors_look(session, code_archive().name)):
        raise EngineLacks("Spark", " ".join(said))


def executors_look(session: SparkSession, archive: str) -> list[dict[str, Any]]:
    """One row an executor that answered: `probing.executor_look`'s. Raises: what the session raises."""
    from pyspark import cloudpickle
    from pyspark.sql import functions as f

    from workers.spark import probing

    executor_look, wait_seconds = probing.executor_look, WAIT_SECONDS

    def look(_: int) -> str:
        import json
        import time

        time.sleep(wait_seconds)
        return json.dumps(executor_look(archive))

    cloudpickle.register_pickle_by_value(probing)
    try:
        told = f.udf(look, "string", useArrow=False)
        rows = session.range(0, LOOKS, 1, LOOKS).select(told("id").alias("told")).collect()
    finally:
        cloudpickle.unregister_pickle_by_value(probing)
    found = {(row := json.loads(one["told"]))["place"]: row for one in rows}
    return [found[place] for place in sorted(found)]


def lacks_of(looks: Sequence[Mapping[str, Any]]) -> list[str]:
    """What executors lack, a sentence each; those that lack the same are counted."""
    here = python_version()
    said: dict[str, set[str]] = {}
    for one in looks:
        for sentence in _lacks(one, here):
            said.setdefault(sentence, set()).add(one["host"])
    return [f"{sentence} ({', '.join(sorted(hosts))})." for sentence, hosts in said.items()]


def _lacks(one: Mapping[str, Any], here: str) -> Iterator[str]:
    if one["python"].split(".")[:2] != here.split(".")[:2]:
        yield python_differs(one["python"], here)
    for name, package in one["packages"].items():
        if package["problem"]:
            yield package_lacks(name, package["problem"])
    if one["code"]:
        yield f"An executor has not our code, though it was sent ({one['code']}): look at its log"


def lack_told(text: str) -> str:
    """What an executor lacks, where a job that died of it left no more than this text; "": nothing of the kind."""
    if found := re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", text):
        top = found[1].partition(".")[0]
        if top in OWN_PACKAGES:
            return "An executor has not our code: it is sent with each new session, so look at its log."
        return f"{package_lacks(top)}."
    if found := re.search(r"different version:? (?:in worker )?\(?([\d.]+)\)? than that in driver:? \(?([\d.]+)", text):
        return f"{python_differs(found[1], found[2])}."
    if "PyArrow" in text and ("must be installed" in text or "not found" in text):
        return f"{package_lacks('pyarrow')}."
    if found := re.search(r'Cannot run program "([^"]+)"', text):
        return (
            f"An executor cannot start Python: there is no {found[1]} on it. Set PYSPARK_PYTHON where the engine runs."
        )
    return ""


def python_differs(there: str, here: str) -> str:
    return f"An executor runs Python {there}, and this is Python {here}: start both with the same minor version"


def package_lacks(name: str, problem: str = "") -> str:
    why = f" ({problem})" if problem and not problem.startswith("ModuleNotFoundError") else ""
    return f"An executor lacks the package {name}{why}: install it where Spark's Python runs"


@dataclass(frozen=True, slots=True)
class CodeArchive:
    """A zip of what tasks import."""

    name: str
    content: bytes

    @contextmanager
    def file(self) -> Iterator[Path]:
        """It as a file of its name, for as long as it is sent: a file that stayed would be left by each worker process, and be
        away once somebody tidies up where temporary files are."""
        with tempfile.TemporaryDirectory(prefix="fencepost-") as directory:
            path = Path(directory) / self.name
            path.write_bytes(self.content)
            yield path


@cache
def code_archive() -> CodeArchive:
    """Of the code as it was when this process first asked; the same code makes the same bytes."""
    files = code_files(str(ROOT))
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(zipfile.ZipInfo(name, EPOCH), content, zipfile.ZIP_DEFLATED)
    return CodeArchive(f"fencepost-{code_digest(files)}.zip", held.getvalue())
