"""Settled items, image audits and drills go by age: what rests on each stays, and what went leaves its sums."""

from __future__ import annotations

import datetime as dt
import json
from itertools import pairwise
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from recovery_api.domain.evidence_places import Stored
from recovery_api.domain.images import ImageVerdict
from recovery_api.domain.outcomes import ImageStatus
from recovery_api.models import (
    ArchivePart,
    Audit,
    Drill,
    EvidencePlace,
    ImageAudit,
    Intent,
    IntentAction,
    LedgerItem,
    LedgerLane,
    SettledItems,
)
from recovery_api.selectors.images import image_base, image_mapping
from recovery_api.selectors.ledger import SETTLED_LOOKED_AT
from recovery_api.selectors.retention import images_kept
from recovery_api.services.images import image_record
from recovery_api.services.intents import intent_create, intent_finish, intent_take
from recovery_api.services.ledger import ledger_void
from recovery_api.services.retention import Retired, evidence_retire, records_retire
from recovery_api.services.settled import settled_retire
from tests.integration.control.test_ledger import lost, record
from tests.integration.control.test_retention import AGES, DAY, THEN, judged
from workers.evidence.canonical import batch_digest, entry_digests


@pytest.fixture
def now():
    return THEN


# -- settled items ----------------------------------------------------------------------------------------------------


def test_settled_items_go_with_the_audits_that_only_they_needed_and_leave_their_count_and_sum(pipeline, now, capsys):
    digests = {position: bytes([position]) * 32 for position in (3, 4, 5)}
    found = [lost(position, digest=digest) for position, digest in digests.items()]
    first = record(pipeline, now, found)
    record(pipeline, now + DAY, [one._replace(settled_by="accepted") for one in found[:2]])
    last = record(pipeline, now + 2 * DAY, found[2:])
    Audit.objects.update(is_standing=False)
    went = records_retire(now + 61 * DAY + DAY / 2, AGES)
    assert went.items == 2
    assert [one.position for one in LedgerItem.objects.all()] == [5], "it is open"
    (row,) = SettledItems.objects.all()
    entries = entry_digests(["0", "0"], [3, 4], [0, 0], [digests[3], digests[4]])
    assert (row.word, row.settled_by, row.count, row.digests) == ("lost", "accepted", 2, batch_digest(entries))
    assert (row.first_seen_at, row.last_settled_at) == (now, now + DAY)
    assert Audit.objects.filter(pk=first.pk).exists(), "the open item was first seen in it"
    later = [one._replace(settled_by="accepted") for one in found[2:]]
    record(pipeline, now + 100 * DAY, later, status="exactly_once")
    record(pipeline, now + 101 * DAY, status="exactly_once")
    Audit.objects.exclude(record_read_at=now + 101 * DAY).update(is_standing=False)
    evidence_retire(now + 200 * DAY, AGES)
    assert records_retire(now + 200 * DAY, AGES).items == 1
    row.refresh_from_db()
    assert (row.count, row.digests) == (
        3,
        batch_digest(entry_digests(["0"] * 3, list(digests), [0] * 3, [*digests.values()])),
    )
    assert not LedgerItem.objects.exists() and not Audit.objects.filter(pk__in=[first.pk, last.pk]).exists()
    call_command("retention", pipeline.name)
    assert "3 settled items of the ledger went by age; their count and the sum of their digests stay." in (
        capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("lane", "then"),
    [
        ({"admitted_below": None}, lambda pipeline, now: None),  # the record does not show who admitted an entry
        ({}, lambda pipeline, now: ledger_void(pipeline, "restored", now)),  # nothing that was seen counts any more
        ({}, lambda pipeline, now: LedgerLane.objects.update(read_at=now)),  # no audit read the record since
    ],
)
def test_what_a_later_audit_looks_at_again_stays_however_old_and_the_rest_goes(pipeline, now, lane, then):
    words = {3: "accepted", 4: "trimmed", 5: "replaced"}
    record(pipeline, now, [lost(position) for position in words], **lane)
    record(pipeline, now + DAY, [lost(position, settled_by=word) for position, word in words.items()], **lane)
    record(pipeline, now + 2 * DAY, status="exactly_once", **lane)
    then(pipeline, now)
    assert settled_retire(now + 4000 * DAY, 100, 9) == 2
    assert [one.position for one in LedgerItem.objects.all()] == [3]
    assert set(SettledItems.objects.values_list("settled_by", "count")) == {("trimmed", 1), ("replaced", 1)}


def test_what_lies_beyond_the_newest_that_are_looked_at_again_goes_whatever_the_record_shows(pipeline, now):
    record(pipeline, now, [lost(0, settled_by="")], admitted_below=None)
    columns = [one.column for one in LedgerItem._meta.fields if one.column != "id"]
    given = {"position": "n", "settled_by": "'accepted'", "settled_at": "first_seen_at + n * interval '1 second'"}
    chosen = [given.get(name, name) for name in columns]
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO recovery_api_ledgeritem ({', '.join(columns)}) SELECT {', '.join(chosen)}"
            f" FROM recovery_api_ledgeritem, generate_series(1, {SETTLED_LOOKED_AT + 3}) n"
        )
    assert settled_retire(now + 4000 * DAY, 1000, 9) == 3
    assert LedgerItem.objects.filter(settled_at__isnull=False).earliest("position").position == 4
    assert SettledItems.objects.get().count == 3


def test_items_go_in_pieces_and_a_sweep_that_ends_early_leaves_the_rest(pipeline, now):
    record(pipeline, now, [lost(position) for position in range(7)])
    record(pipeline, now + DAY, [lost(position, settled_by="trimmed") for position in range(7)], status="exactly_once")
    assert [settled_retire(now + 90 * DAY, 2, 4) for _ in range(3)] == [4, 3, 0]
    assert SettledItems.objects.get().count == 7


def test_a_lane_of_an_earlier_epoch_goes_unless_somebody_decided_something_of_it(pipeline, now):
    for n, epoch in enumerate(("e1", "e2", "e3")):
        record(pipeline, now + n * DAY, epoch=epoch, status="exactly_once")
    LedgerLane.objects.filter(epoch="e1").update(
        decided_below={"position": "4", "ordinal": "0"}, decided_at=now, decided_by="ada", decided_because="tests"
    )
    assert records_retire(now + 100 * DAY, AGES).lanes == 1
    assert list(LedgerLane.objects.order_by("epoch").values_list("epoch", flat=True)) == ["e1", "e3"]


def test_what_tells_of_a_file_that_went_goes_unless_the_archive_goes_on_from_there(pipeline, now):
    audit = judged(pipeline, now)
    for low, high in pairwise((None, 10, 20, 30)):
        ArchivePart.objects.create(
            pipeline=pipeline,
            lane="0",
            low_position=low,
            low_ordinal=None if low is None else 0,
            high_position=high,
            high_ordinal=0,
            rows=1,
            bytes=1,
            digest="d",
            file=f"{high}.parquet",
            file_digest="f",
            incarnation="i",
            mapping="m",
            audit=audit,
            written_at=now,
            expires_at=now + DAY,
            **({} if high == 20 else {"gone_at": now + DAY, "gone_because": "its time was over"}),
        )
    assert records_retire(now + 100 * DAY, AGES).archive == 1
    assert sorted(ArchivePart.objects.values_list("high_position", flat=True)) == [20, 30]


# -- image audits -----------------------------------------------------------------------------------------------------


def compared(pipeline, at, **more: Any) -> ImageAudit:
    """A comparison that a person asked for, with parts of its own."""
    intent = intent_create(IntentAction.IMAGE, actor="ada", now=at, pipeline=pipeline, wake=False)
    taken = intent_take(intent.id, "worker", at)
    assert taken is not None
    stored = Stored(f"/evidence/images/{intent.id}")
    EvidencePlace.objects.create(uri=stored.uri, begun_at=at)
    verdict = ImageVerdict(ImageStatus.MISMATCH_FREE, "Every key is as its latest event says.")
    return image_record(taken, verdict, now=at, started_at=at, evidence=stored, **more)


def test_comparisons_that_people_asked_for_go_by_age_parts_first_and_then_rows_and_work(pipeline, now):
    old, new = (compared(pipeline, now + DAY * n, keys_count=7) for n in (0, 1))
    later = now + 20 * DAY
    assert [one.uri for one in evidence_retire(later, AGES)] == [old.evidence_uri]
    old.refresh_from_db()
    assert (old.evidence_gone_at, old.keys_count) == (later, 7)
    assert EvidencePlace.objects.get(released_at__isnull=False).uri == old.evidence_uri
    (kept,) = images_kept(ImageAudit.objects.filter(pk=new.pk))
    assert kept.keeping(AGES, later).says == "Pinned: its pipeline has no newer image audit."
    assert records_retire(later + 40 * DAY, AGES).images == 0
    went = records_retire(now + 100 * DAY, AGES)
    assert (went.images, went.intents) == (1, 1)
    assert ImageAudit.objects.get() == new and Intent.objects.get() == new.intent


def test_the_base_that_the_next_comparison_goes_by_is_pinned_and_an_older_one_goes(pipeline, now):
    base = {"base_digest": "b", "base_incarnation": "i", "base_mapping": image_mapping(pipeline)}
    older, newer = (compared(pipeline, now + DAY * n, **base) for n in (0, 1))
    other = compared(pipeline, now, **{**base, "base_mapping": "as it was mapped before"})
    compared(pipeline, now + 2 * DAY)
    gone = {one.uri for one in evidence_retire(now + 100 * DAY, AGES)}
    assert gone == {older.evidence_uri, other.evidence_uri}
    assert image_base(pipeline) == newer
    (kept,) = images_kept(ImageAudit.objects.filter(pk=newer.pk))
    assert kept.keeping(AGES, now).says == "Pinned: the next image audit goes by the base that is kept with them."
    assert records_retire(now + 100 * DAY, AGES).images == 2


def test_work_of_a_comparison_that_stays_holds_up_no_other_work(pipeline, now):
    """The oldest finished work is of a comparison that is the newest of its pipeline: it stays, the rest goes."""
    compared(pipeline, now)
    spent = intent_create(IntentAction.AUDIT, actor="ada", now=now, pipeline=pipeline, wake=False)
    taken = intent_take(spent.id, "worker", now)
    assert taken is not None
    intent_finish(taken, {}, now + DAY)
    assert records_retire(now + 100 * DAY, AGES).intents == 1
    assert Intent.objects.get().action == IntentAction.IMAGE


def test_retention_tells_of_image_audits_by_command(pipeline, now, capsys):
    compared(pipeline, now), compared(pipeline, now + DAY)
    evidence_retire(now + 20 * DAY, AGES)
    call_command("retention", pipeline.name, "--json")
    row = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (row["kept"], row["pinned"], row["gone"], row["settled_gone"]) == (1, 1, 1, 0)
    assert [one["piece"] for one in row["pins"]] == ["image"]


# -- drills -----------------------------------------------------------------------------------------------------------


def test_drills_go_by_age_but_the_newest_that_something_is_told_of(pipeline, now):
    def drilled(at: dt.datetime, state: str, names: list[str]) -> Drill:
        given = {"sink": pipeline.sink, "created_at": at, "created_by": "ada"}
        ended = {} if state == "requested" else {"finished_at": at}
        over = {"state": "done", **ended} if ended else {}
        intent = Intent.objects.create(action=IntentAction.DRILL, **given, **over)
        same = {"sink": pipeline.sink, "intent": intent, "names": names, "requested_by": "ada", "requested_at": at}
        return Drill.objects.create(state=state, **same, **ended)

    told = [("passed", []), ("passed", []), ("unknown", []), ("failed", ["late"]), ("passed", ["late"])]
    _, passed, whole, _, last = [drilled(now + n * DAY, *one) for n, one in enumerate(told)]
    live = drilled(now, "requested", ["late"])
    went = records_retire(now + 100 * DAY, AGES)
    assert (went.drills, went.intents) == (2, 2)
    assert set(Drill.objects.all()) == {passed, whole, last, live}
    assert records_retire(now + 100 * DAY, AGES) == Retired()
