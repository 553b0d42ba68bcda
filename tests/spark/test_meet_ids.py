"""Events and entries met by id on the engine: as many sets as they need, findings back in their ranges, errors as themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from recovery_api.domain.errors import Unsuitable
from recovery_api.domain.outcomes import Status
from tests.integration.postgresql.id_tables import FOR_EVER, OUTBOX, Inboxes
from tests.integration.postgresql.mapped_tables import Bench
from workers.evidence.batch import batch_of_part
from workers.evidence.schemas import FINDING
from workers.evidence.store import FINDINGS, rows_read
from workers.spark import meet_ids
from workers.spark.tasks import InProcess

pytestmark = pytest.mark.spark

EVENTS = 3_000


@pytest.fixture
def inboxes(database_factory: Callable[[str], str], tmp_path: Path) -> Iterator[Inboxes]:
    bench = Bench(database_factory("ids"), tmp_path)
    bench.run.execute(OUTBOX)
    yield Inboxes(bench, tmp_path)
    bench.close()


def answers(found: Any, verdict: Any) -> tuple[Any, ...]:
    rows = rows_read(found.stored, found.stored.of(FINDINGS), FINDING).to_pylist()
    batch = (found.batch_count, found.batch_digest, [(piece.part, piece.count, piece.digest) for piece in found.pieces])
    return verdict.status, verdict.counts, batch, [tuple(row.values()) for row in rows], verdict.weaknesses


def test_sets_of_ids_answer_as_one_process_does(inboxes: Inboxes, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meet_ids, "BLOCK_ROWS", 700)
    run = inboxes.bench.run
    inboxes.commit(*range(1, EVENTS + 1))
    run.execute("ANALYZE outbox; CREATE TABLE seen (message_id text)")
    run.execute("INSERT INTO seen SELECT upper(message_id::text) FROM outbox WHERE id % 7 <> 0")
    run.execute("INSERT INTO seen SELECT message_id::text FROM outbox WHERE id % 50 = 0")
    run.execute("INSERT INTO seen SELECT gen_random_uuid()::text FROM generate_series(1, 9)")
    record = inboxes.record(table="seen", event_id="message_id", **FOR_EVER)
    found, verdict = inboxes.audit(record, session=spark)
    alone = inboxes.audit(record, session=InProcess())
    assert answers(found, verdict)[:4] == answers(*alone)[:4]
    lost = [number for number in range(1, EVENTS + 1) if number % 7 == 0 and number % 50]
    assert verdict.status is Status.HAZARD and verdict.counts.lost == len(lost) == found.batch_count
    positions = [
        place for piece in found.pieces for place in batch_of_part(found.spec, piece.part)["position"].to_pylist()
    ]
    assert positions == lost
    assert verdict.counts.duplicate_payloads == len([one for one in range(50, EVENTS + 1, 50) if one % 7])
    assert verdict.counts.ids_unmatched == 9 and not list(Path(found.stored.uri).glob("staged*"))


def test_an_id_of_two_events_is_refused_by_the_task_that_meets_it(inboxes: Inboxes, spark: Any) -> None:
    run = inboxes.bench.run
    run.execute("ALTER TABLE outbox ALTER message_id TYPE text; CREATE TABLE seen (message_id uuid)")
    text = "6f1c0b7e-1d2a-4c55-9a3e-0d9f5b7e2a10"
    run.execute("INSERT INTO outbox VALUES (1, %s), (2, %s)", [text, text.upper()])
    with pytest.raises(Unsuitable, match="positions 1 and 2"):
        inboxes.audit(inboxes.record(table="seen", event_id="message_id", **FOR_EVER), session=spark)


def test_two_empty_ends_judge_nothing(inboxes: Inboxes, spark: Any) -> None:
    inboxes.bench.run.execute("CREATE TABLE seen (message_id uuid)")
    _, verdict = inboxes.audit(inboxes.record(table="seen", event_id="message_id", **FOR_EVER), session=spark)
    assert verdict.status is Status.UNKNOWN and "Nothing was judged" in verdict.unknown_because[0]
