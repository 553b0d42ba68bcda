"""The kernel against the definitions in plain Python, and against itself over any split into blocks."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, replace
from itertools import pairwise

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from recovery_api.domain.coordinates import Coordinate
from workers.evidence import schemas
from workers.evidence.canonical import content_digest, payload_digest
from workers.evidence.kernel import LaneQuestion, fold, judge_block

COORDINATES = st.tuples(st.integers(0, 5), st.integers(0, 1))
FLAT = st.tuples(st.integers(-3, 5), st.just(0))
EVENTS = st.tuples(st.sampled_from(["insert", "delete"]), st.sampled_from(["a", "b", None]), st.integers(0, 1))


def sides(coordinates):
    event = st.tuples(coordinates, EVENTS)
    return st.fixed_dictionaries(
        {
            "history": st.lists(event, max_size=7),
            "journal": st.none() | st.lists(event, max_size=7),
            "accepted": st.lists(st.tuples(coordinates, EVENTS, st.none() | coordinates), max_size=8),
            "frontier": coordinates,
            "floor": st.none() | coordinates,
            "scope": st.none() | st.lists(st.sampled_from(["a", "b"]), max_size=2),
            "acknowledged": st.lists(coordinates, max_size=2),
            "has_journal": st.booleans(),
            "rows_go": st.booleans(),
            "admitted_below": st.none() | st.integers(0, 8),
            "doubted": st.lists(st.tuples(coordinates, EVENTS), max_size=3),
        }
    )


LANES = sides(COORDINATES) | sides(FLAT)


def digest(event):
    op, key, value = event
    return payload_digest(op, key, content_digest(value, op))


def history_table(events, first_entry=0):
    rows = [
        {"lane": "x", "position": p, "ordinal": o, "entry": place, "op": e[0], "key": e[1], "payload_digest": digest(e)}
        for place, ((p, o), e) in enumerate(events, first_entry)
    ]
    return pa.Table.from_pylist(rows, schema=schemas.HISTORY)


def accepted_table(entries):
    rows = [
        {
            "lane": "x",
            "position": p,
            "ordinal": o,
            "payload_digest": digest(e),
            "head_position": head and head[0],
            "head_ordinal": head and head[1],
            "entry": place,
            "admitted_in": place,
        }
        for place, ((p, o), e, head) in enumerate(entries)
    ]
    return pa.Table.from_pylist(rows, schema=schemas.ACCEPTED)


def question_of(lane):
    journal = lane["history"] if lane["journal"] is None else lane["journal"]
    listed = sorted(set(lane["acknowledged"]))
    return LaneQuestion(
        lane="x",
        frontier=Coordinate(*lane["frontier"]),
        journal_head=Coordinate(*max(c for c, _ in journal)) if journal else None,
        floor=Coordinate(*lane["floor"]) if lane["floor"] else None,
        scope=None if lane["scope"] is None else pa.array(lane["scope"], pa.string()),
        acknowledged=pa.table(
            {name: pa.array([c[at] for c in listed], pa.int64()) for at, name in enumerate(("position", "ordinal"))}
        ),
        has_journal=lane["journal"] is not None or lane["has_journal"],
        rows_go=lane["rows_go"],
        admitted_below=lane["admitted_below"],
        doubted=history_table([(c, e) for c, e in lane["doubted"]]).select(["position", "ordinal", "payload_digest"]),
    )


def oracle(lane):
    """THEORY section 2, row by row."""
    history, accepted, frontier, floor = lane["history"], lane["accepted"], lane["frontier"], lane["floor"]
    journal = history if lane["journal"] is None else lane["journal"]
    has_journal = lane["journal"] is not None or lane["has_journal"]
    committed, coordinates = set(journal), {c for c, _ in journal}
    head_of_all = max(coordinates, default=None)
    record = Counter((c, e) for c, e, _ in accepted)

    def is_owed(event):
        return event[0] <= frontier and (lane["scope"] is None or event[1][1] in lane["scope"])

    def cause(place, entry):
        coordinate, event, head = entry
        ahead = head is not None and head < coordinate
        beyond = head is not None and (head > head_of_all if head_of_all is not None else has_journal)
        if (coordinate, event) not in committed:
            if coordinate in coordinates:
                return "altered"
            seen = lane["admitted_below"] is not None and place < lane["admitted_below"]
            if seen and (coordinate, event) not in lane["doubted"]:
                return None
            may_be_gone = lane["rows_go"] or (floor and coordinate < floor)
            if not has_journal and may_be_gone and not ahead and not beyond:
                return "unknown"
            return "never committed"
        return "ahead of its commit" if ahead else "head not believed" if beyond else None

    retained = [(c, e) for c, e in history if floor is None or c >= floor]
    causes = [cause(place, entry) for place, entry in enumerate(accepted)]
    delta = [event for event in retained if is_owed(event) and not record[event]]
    journal_lost = [event for event in journal if is_owed(event) and not record[event]]
    entries = [c for c, _ in history]
    return {
        "delta": [c for c, _ in delta],
        "hidden": sum(c in {entry[0] for entry in accepted} for c, _ in delta),
        "journal_lost": [c for c, _ in journal_lost],
        "lost": (Counter(delta) | Counter(journal_lost)).total(),
        "acknowledged": sorted({c for c, _ in delta + journal_lost} & set(lane["acknowledged"])),
        "causes": {place: found for place, found in enumerate(causes) if found},
        "duplicates": sorted((c, times) for (c, _), times in record.items() if times > 1),
        "uncovered": sum(floor is not None and c < floor for c, _ in journal_lost),
        "ascending": all(a < b for a, b in pairwise(entries)),
        "obligations": (sum(map(is_owed, retained)), sum(map(is_owed, journal))),
    }


def seen(counts, findings):
    """The same facts, from the kernel."""
    rows = findings.to_pylist()
    lost = [row for row in rows if row["finding"] == "lost"]

    def coordinates(kept, entry):
        return [(row["position"], row["ordinal"]) for row in sorted(kept, key=lambda row: row[entry])]

    return {
        "delta": coordinates([row for row in lost if row["is_retained"]], "entry"),
        "hidden": counts.lost_hidden,
        "journal_lost": coordinates([row for row in lost if row["is_in_journal"]], "journal_entry"),
        "lost": counts.lost,
        "acknowledged": sorted({(row["position"], row["ordinal"]) for row in lost if row["is_acknowledged"]}),
        "causes": {
            row["entry"]: "unknown" if row["finding"] == "unknown" else row["cause"]
            for row in rows
            if row["finding"] in ("premature", "unknown")
        },
        "duplicates": sorted(
            ((row["position"], row["ordinal"]), row["accepted_count"]) for row in rows if row["finding"] == "duplicate"
        ),
        "uncovered": counts.floor_uncovered,
        "ascending": counts.coordinates_ascending,
        "obligations": (counts.obligations_retained, counts.obligations_journal),
    }


def judged(lane, cuts=()):
    question = question_of(lane)
    tables = [history_table(lane["history"]), accepted_table(lane["accepted"])]
    if lane["journal"] is not None:
        tables.append(history_table(lane["journal"], 100))
    bounds = [(-100, 0), *sorted(cuts), (100, 0)]
    blocks = []
    for low, high in pairwise(bounds):
        parts = []
        for table in tables:
            pairs = zip(table["position"].to_pylist(), table["ordinal"].to_pylist(), strict=True)
            parts.append(table.filter(pa.array([low <= pair < high for pair in pairs], pa.bool_())))
        blocks.append(judge_block(question, *parts))
    return fold(block.counts for block in blocks), pa.concat_tables(block.findings for block in blocks)


@settings(max_examples=200)
@given(LANES)
def test_kernel_equals_the_definitions_in_plain_python(lane):
    assert seen(*judged(lane)) == oracle(lane)


@settings(max_examples=200)
@given(LANES, st.lists(COORDINATES, max_size=3))
def test_any_split_into_blocks_folds_to_the_same_verdict(lane, cuts):
    whole_counts, whole = judged(lane)
    counts, findings = judged(lane, cuts)
    assert asdict(counts) == asdict(whole_counts)
    order = [(name, "ascending") for name in ("finding", "position", "ordinal", "entry", "journal_entry")]
    assert findings.sort_by(order).equals(whole.sort_by(order))


@settings(max_examples=150)
@given(LANES)
def test_matching_by_coordinate_agrees_where_its_two_conditions_hold(lane):
    lane["journal"] = lane["admitted_below"] = None  # what was seen may not contradict itself; what is drawn does
    counts, findings = judged(lane)
    narrow = ["position", "ordinal", "entry", "key", "head_position", "head_ordinal"]
    history = history_table(lane["history"])
    accepted = accepted_table(lane["accepted"])
    keyed = judge_block(
        question_of(lane),
        history.select([name for name in narrow if name in history.column_names]),
        accepted.select([name for name in narrow if name in accepted.column_names]),
    )
    if counts.is_keyed_sound:
        keyed_counts = fold([keyed.counts])
        assert replace(keyed_counts, rows_by_coordinate=0) == counts
        facts = seen(keyed_counts, keyed.findings)
        assert facts == seen(counts, findings)


@settings(max_examples=200)
@given(st.lists(st.integers(-20, 20)), st.lists(st.integers(-25, 25)), st.integers(1, 10**11))
def test_coordinates_far_apart_are_judged_as_those_close_together(committed, accepted, step):
    def verdict(width):
        history, record = (
            pa.table({"position": pa.array([n * width for n in side], pa.int64())}) for side in (committed, accepted)
        )
        frontier = Coordinate(5 * width)
        block = judge_block(LaneQuestion("x", frontier, Coordinate(20 * width)), history, record)
        counts = {name: n for name, n in block.counts.items() if not name.startswith(("first_", "last_"))}
        return counts, sorted((row["finding"], row["position"] // width) for row in block.findings.to_pylist())

    assert verdict(step * 10**6) == verdict(1)
