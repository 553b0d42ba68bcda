"""docs/metrics: the rules hold by promtool, and nothing there names a series that a scrape does not give."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from recovery_api.domain.alerts.causes import Cause

METRICS = Path(__file__).parents[2] / "docs" / "metrics"
SERIES = re.compile(r"\bfencepost_[a-z_]+\b")


def listed() -> set[str]:
    rows = [row for row in (METRICS / "README.md").read_text(encoding="utf-8").splitlines() if row.startswith("| `")]
    return {name for row in rows for name in SERIES.findall(row.split("|")[1])}


def test_rules_and_dashboard_name_only_series_that_the_page_lists() -> None:
    dashboard = json.loads((METRICS / "fencepost.dashboard.json").read_text(encoding="utf-8"))
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    expressions.append(dashboard["templating"]["list"][1]["query"]["query"])
    rules = (METRICS / "fencepost.rules.yml").read_text(encoding="utf-8")
    expressions += re.findall(r"expr: (.*)", rules)
    assert len(expressions) > 20
    assert {name for one in expressions for name in SERIES.findall(one)} <= listed()
    named = set(re.findall(r"docs/runbooks/([a-z_]+)\.md", rules))
    assert named <= {cause.value for cause in Cause}


@pytest.mark.parametrize(
    "words", [("check", "rules", "fencepost.rules.yml"), ("test", "rules", "fencepost.rules.test.yml")]
)
def test_promtool_accepts_the_rules(words: tuple[str, ...]) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is missing: apt install prometheus (.ci/run does)")
    done = subprocess.run([promtool, *words], cwd=METRICS, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
