"""How long an end may be silent, and what counts as progress: pure decisions."""

from __future__ import annotations

import pytest

from workers.connectors.deadlines import LOOK_AGAIN_SECONDS, Backend, Silence, Step
from workers.connectors.progress import progress_beat, progress_heard

WORKING = Backend("active")


@pytest.mark.parametrize(
    ("backend", "is_at_work"),
    [
        (Backend("active"), True),
        (Backend("active", "IO", "DataFileRead"), True),
        (Backend("active", "LWLock", "WALWrite"), True),
        (Backend("active", "Lock", "relation"), False),
        (Backend("active", "Lock", "advisory"), False),
        (Backend("active", "Client", "ClientWrite"), False),  # it sends, and nothing arrives
        (Backend("active", "Client", "ClientRead"), False),
        (Backend("active", "IPC", "SyncRep"), False),
        (Backend("active", "BufferPin", "BufferPin"), False),
        (Backend("idle"), False),
        (Backend("idle in transaction", "Client", "ClientRead"), False),
        (Backend(None), False),
    ],
)
def test_l1_a_backend_that_waits_for_somebody_is_no_progress(backend: Backend, is_at_work: bool) -> None:
    assert backend.is_at_work is is_at_work


def test_l1_a_steps_deadline_grows_with_its_entries_and_its_own_wait() -> None:
    assert Step("the fire").deadline_seconds(30) == 30
    assert Step("the fire", 200_000, 5).deadline_seconds(30) == 30 + 5 + 40


def test_l1_a_silent_end_is_over_at_its_deadline_whatever_was_not_seen() -> None:
    silence = Silence(30, now=0)
    assert not silence.wants_look(1)
    assert silence.wants_look(2)
    assert silence.looked(None, 2) is False
    assert not silence.wants_look(2 + LOOK_AGAIN_SECONDS / 2)
    assert silence.wants_look(12)
    assert silence.looked(Backend("active", "Lock", "relation"), 12) is False
    assert not silence.is_over(29)
    assert silence.is_over(30) and silence.wants_look(30)


def test_l1_an_end_seen_at_work_or_heard_has_its_whole_time_again() -> None:
    silence = Silence(30, now=0)
    assert silence.looked(WORKING, 29) is True
    assert not silence.is_over(58)
    silence.heard(58)
    assert not silence.is_over(87)
    assert silence.is_over(88)


def test_a_beat_reaches_who_listens_and_nobody_else() -> None:
    beats: list[str] = []
    progress_beat()
    with progress_heard(lambda: beats.append("outer")):
        with progress_heard(lambda: beats.append("inner")):
            progress_beat()
        progress_beat()
    progress_beat()
    assert beats == ["inner", "outer"]
