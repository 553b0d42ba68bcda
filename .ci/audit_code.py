"""`make audit-code`: what bandit finds in our code, and what is known against the packages that are installed.

Exit 1 where either found something. That nothing is known is said only of packages that could be asked about: without a
network, or at a registry that has no such data, it says *no data* and does not fail.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

CODE = ("dashboard", "recovery_api", "workers", "manage.py")


def main(arguments: Sequence[str] = ()) -> int:
    """`arguments` are pip-audit's."""
    is_clean = code_audit() == 0
    lines, has_found = packages_said(*packages_audit(arguments))
    print("\n".join(lines))
    return 0 if is_clean and not has_found else 1


def code_audit() -> int:
    """bandit's exit code, with the reasons of pyproject.toml and of each `nosec`."""
    done = subprocess.run([sys.executable, "-m", "bandit", "-q", "-r", *CODE, "-c", "pyproject.toml"], check=False)
    if done.returncode == 0:
        print("bandit: nothing found.")
    return done.returncode


def packages_audit(arguments: Sequence[str] = ()) -> tuple[Mapping[str, Any] | None, str]:
    """pip-audit's report of what is installed here, and the last line it said. None: it could not make one."""
    command = [sys.executable, "-m", "pip_audit", "--progress-spinner", "off", "--format", "json"]
    done = subprocess.run([*command, *(arguments or ["--local"])], capture_output=True, text=True, check=False)
    said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    try:
        return json.loads(done.stdout), said
    except json.JSONDecodeError:
        return None, said


def packages_said(report: Mapping[str, Any] | None, said: str) -> tuple[list[str], bool]:
    """What to print, and whether something is known against a package."""
    if report is None:
        return [f"pip-audit: no data ({said}). Nothing is known, for or against."], False
    packages = report["dependencies"]
    unknown = [package for package in packages if "skip_reason" in package]
    found = [(package, one) for package in packages for one in package.get("vulns", [])]
    lines = [
        f"pip-audit: {package['name']} {package['version']}: {one['id']}, mended in"
        f" {', '.join(one['fix_versions']) or 'no version yet'}"
        for package, one in found
    ]
    asked = len(packages) - len(unknown)
    if asked == 0:
        reason = unknown[0]["skip_reason"] if unknown else "no package"
        return [*lines, f"pip-audit: no data for any of {len(packages)} packages ({reason})."], bool(found)
    lines.append(f"pip-audit: {asked} packages asked about, {len(found)} vulnerabilities known.")
    if unknown:
        lines.append(f"pip-audit: no data for {len(unknown)}: {', '.join(package['name'] for package in unknown)}.")
    return lines, bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
