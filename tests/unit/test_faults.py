"""Crash points: nothing unless armed, one death a marker, one barrier a gate."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from workers.faults import Point, crash_point

PROJECT = Path(__file__).parents[2]
PROGRAM = "import sys; from workers.faults import crash_point; crash_point(sys.argv[1]); print('alive')"


def pass_point(name: str, **armed: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, name], cwd=PROJECT, env={**os.environ, **armed}, capture_output=True, text=True
    )


def test_unarmed_points_do_nothing() -> None:
    for point in Point:
        crash_point(point)


def test_whoever_creates_the_marker_dies_and_its_replacement_lives(tmp_path: Path) -> None:
    marker = tmp_path / "died"
    first = pass_point("before_fire", FENCEPOST_CRASH=f"before_fire:{marker}")
    second = pass_point("before_fire", FENCEPOST_CRASH=f"before_fire:{marker}")
    assert first.returncode == -signal.SIGKILL
    assert marker.exists()
    assert (second.returncode, second.stdout) == (0, "alive\n")


def test_other_points_pass_an_armed_one(tmp_path: Path) -> None:
    armed = f"before_fire:{tmp_path / 'a'};after_fire:{tmp_path / 'b'}"
    assert pass_point("before_claim", FENCEPOST_CRASH=armed).stdout == "alive\n"
    assert list(tmp_path.iterdir()) == []


def test_unknown_point_is_refused_for_it_would_prove_nothing(tmp_path: Path) -> None:
    done = pass_point("before_fire", FENCEPOST_CRASH=f"befor_fire:{tmp_path / 'a'}")
    assert "'befor_fire' is not a valid Point" in done.stderr


def test_paused_process_tells_that_it_waits_and_goes_on_at_the_gate(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    reached = tmp_path / "gate.reached"
    os.mkfifo(reached)  # opening it to read waits for the other side
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "after_claim"],
        cwd=PROJECT,
        env={**os.environ, "FENCEPOST_PAUSE": f"after_claim:{gate}"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        with reached.open():
            assert process.poll() is None
            gate.touch()
        assert process.communicate()[0] == "alive\n"
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("point", list(Point))
def test_every_point_says_what_a_death_there_leaves(point: Point) -> None:
    source = (PROJECT / "workers" / "faults.py").read_text(encoding="utf-8")
    assert f'{point.name} = "{point.value}"\n    """' in source
