"""What earlier audits saw, against a plain account of a life: commits, deliveries, purges and audits in any order."""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

from recovery_api.domain.coordinates import INT64_MAX, Coordinate
from recovery_api.domain.kinds import kind_get, options_parse
from workers.connectors.readings import CoordinateRange, Reading, Width
from workers.connectors.rows import payload_of
from workers.evidence import schemas
from workers.evidence.kernel import LaneQuestion
from workers.evidence.ranges import EndSpec, MeetSpec
from workers.evidence.remembered import judge_remembering, ledger_tell

names = itertools.count()
RANGE = CoordinateRange("0", None, None)
numbers = st.integers(1, 6)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), numbers),
        st.tuples(st.just("deliver"), numbers),
        st.tuples(st.just("purge"), numbers),
        st.tuples(st.just("audit"), st.just(0)),
    ),
    max_size=25,
)


def event(number: int) -> dict[str, object]:
    return {"lane": "0", "position": number, "ordinal": 0, "op": "insert", "key": f"k{number}", "content": "1"}


class Life:
    """One lane's life, told twice: to the product, and as sets. `seen`: acceptances an audit saw to be committed."""

    def __init__(self, evidence: Path, rows_go: bool) -> None:
        options = options_parse(kind_get("memory"), {"name": f"life {next(names)}"})
        self.end, self.rows_go = EndSpec("memory", options), rows_go
        self.evidence, self.audits = evidence, 0
        self.committed: set[int] = set()
        self.kept: set[int] = set()
        self.accepted: set[int] = set()
        self.known_lost: set[int] = set()
        self.seen: set[int] = set()
        self.items = schemas.ITEM.empty_table()
        self.mark: int | None = None

    def commit(self, number: int) -> None:
        if number not in self.committed:
            self.committed.add(number)
            self.kept.add(number)

    def deliver(self, number: int) -> None:
        if number in self.committed and number not in self.accepted:
            row = pa.Table.from_pylist([event(number)], schema=schemas.BATCH)
            assert self.end.fenced().deliver(0, row) == ["accepted"]
            self.accepted.add(number)

    def purge(self, number: int) -> None:
        self.kept.discard(number)

    def audit(self, _: int) -> None:
        history = pa.Table.from_pylist(
            [
                {
                    "lane": "0",
                    "position": number,
                    "ordinal": 0,
                    "payload_digest": payload_of(event(number)),
                }
                for number in sorted(self.kept)
            ],
            schema=schemas.HISTORY,
        ).select(["position", "ordinal", "payload_digest"])
        folder = self.evidence / str(self.audits)
        folder.mkdir()
        self.audits += 1
        with self.end.record().hold_snapshot() as reading:
            batches = list(self.end.record().read_accepted(reading, RANGE, Width.PAYLOAD))
            mark = int(reading.handle["oldest_open"])
        accepted = pa.Table.from_batches(batches) if batches else schemas.ACCEPTED.empty_table()
        question = LaneQuestion(
            "0", Coordinate(INT64_MAX), has_journal=False, rows_go=self.rows_go, admitted_below=self.mark
        )
        nothing = Reading("", {})
        spec = MeetSpec(self.end, self.end, nothing, nothing, (RANGE,), {"0": question}, Width.PAYLOAD, str(folder))
        verdict, accepted = judge_remembering(spec, RANGE, question, history, accepted, self.items)
        told, _ = ledger_tell(spec, question, verdict.findings, history, accepted, self.items)
        self.mark = mark
        self._compare(verdict.findings)
        self._remember(told)

    def _compare(self, findings: pa.Table) -> None:
        lost = (self.kept | self.known_lost) - self.accepted
        shown = self.accepted & (self.kept | self.known_lost)
        unshown = self.accepted - shown - self.seen
        assert self._of(findings, "lost") == lost
        assert self._of(findings, "unknown" if self.rows_go else "premature") == unshown
        assert self._of(findings, "premature" if self.rows_go else "unknown") == set()
        self.known_lost |= lost
        self.seen |= shown

    def _of(self, findings: pa.Table, finding: str) -> set[int]:
        return set(findings.filter(pc.equal(findings["finding"], finding))["position"].to_pylist())

    def _remember(self, told: pa.Table) -> None:
        """As the ledger does: what is open, and what was found missing and was accepted since, numbered as rows are."""
        new = told.select(["position", "word"])
        earlier = self.items.filter(self.items["settled_by"].is_valid())
        earlier = earlier.join(new, ["position", "word"], join_type="left anti").select(schemas.ITEM.names)
        rows = pa.concat_tables([earlier, told])
        ids = pa.array(
            [None if word == "unjustifiable" else at for at, word in enumerate(rows["word"].to_pylist())], pa.int64()
        )
        self.items = rows.set_column(0, schemas.ITEM.field("id"), ids)


@settings(max_examples=60, deadline=None)
@given(steps, st.booleans())
def test_what_was_owed_stays_owed_and_what_was_seen_stays_justified(tmp_path_factory, life, rows_go) -> None:
    one = Life(tmp_path_factory.mktemp("life"), rows_go)
    for step, number in [*life, ("audit", 0), ("audit", 0)]:
        getattr(one, step)(number)
