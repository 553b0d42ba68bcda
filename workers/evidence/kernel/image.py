"""What each key holds at a frontier, and where the store's image differs from the committed one.

The rule for one key is the domain's (`recovery_api.domain.images.key_judge`), looked up in a table of all its cases, for
exports by `image_mismatches` and for an image audit's sets of keys by `image_judge`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.images import Committed, ImageCounts, ImageWord, Shown, judged_as
from workers.evidence.kernel.questions import at_or_below, one_array
from workers.evidence.schemas import DIGEST, IMAGE_FINDING, IMAGE_ROW, shaped

NO_EVENT, ABSENCE = -2, -1
TEXT = pa.string()
EVENT, BASE, ROW, LATER, ACCEPTED = 0, 1, 2, 3, 4
"""What a row of `MEETING` says of its key: an event at or below f; a row of the base; a row of the target; an
acceptance above f; one at or below it."""

MEETING = pa.schema([("side", pa.int8()), *IMAGE_ROW])
"""All that is brought together of a set of keys: no key and no content."""

BASE_ROW = pa.schema([("key_hash", DIGEST), ("digest", DIGEST)])
"""What `Src` gives a key that is there."""

_WORDS = np.array(
    [[[judged_as(committed, shown, later) for later in (False, True)] for shown in Shown] for committed in Committed]
)
"""By what is committed, what is shown and whether there is a later acceptance: the word's place, 0 for none."""


@dataclass(frozen=True, slots=True)
class ImageQuestion:
    """`is_whole`: a key that neither events nor base tell of was never there. `scope`: hashes of the keys that count; None:
    all do. `has_base`: what `Src` gives each key is wanted, too."""

    is_whole: bool
    scope: pa.Array | None = None
    has_base: bool = False


@dataclass(frozen=True, slots=True)
class ImageJudged:
    """One set of keys. `findings`: IMAGE_FINDING, in the order of words and hashes. `base`: BASE_ROW of every key that is
    there by history and base; empty unless it was asked for."""

    counts: ImageCounts
    findings: pa.Table
    base: pa.Table


def image_judge(question: ImageQuestion, rows: pa.Table) -> ImageJudged:
    """Every key of MEETING rows, judged."""
    side = one_array(rows["side"])
    keys, (codes,) = _coded([rows["key_hash"]], DIGEST)
    digests, (contents,) = _coded([rows["digest"]], DIGEST)
    count = len(keys)
    is_absent = np.asarray(rows["digest"].is_null())
    position, ordinal = one_array(rows["position"]), one_array(rows["ordinal"])

    committed = np.full(count, Committed.ABSENT if question.is_whole else Committed.UNTOLD, np.int8)
    content = np.full(count, NO_EVENT, np.int64)
    base = np.flatnonzero(side == BASE)
    committed[codes[base]], content[codes[base]] = Committed.PRESENT, contents[base]
    events = np.flatnonzero(side == EVENT)
    latest, is_tied = _latest_rows(codes, position, ordinal, contents, events, count)
    told = np.flatnonzero(latest >= 0)
    committed[told] = np.where(is_absent[latest[told]], Committed.ABSENT, Committed.PRESENT)
    content[told] = contents[latest[told]]
    committed[is_tied] = Committed.TIED
    committed[_passed(codes, position, ordinal, np.flatnonzero(side == ACCEPTED), latest)] = Committed.PASSED

    place = np.full(count, -1, np.int64)
    shown_rows = np.flatnonzero(side == ROW)
    place[codes[shown_rows]] = shown_rows
    shown = np.full(count, Shown.ABSENT, np.int8)
    held = np.flatnonzero(place >= 0)
    is_same = (contents[place[held]] == content[held]) & (committed[held] == Committed.PRESENT)
    shown[held] = np.where(is_same, Shown.SAME, Shown.OTHER)
    has_later = np.zeros(count, np.int8)
    has_later[codes[side == LATER]] = 1

    words = _WORDS[committed, shown, has_later]
    is_asked = np.ones(count, bool)
    if question.scope is not None:
        is_asked = pc.is_in(keys, value_set=question.scope.cast(keys.type)).to_numpy(zero_copy_only=False)
        words = np.where(is_asked, words, 0)
    counted = np.bincount(words, minlength=len(ImageWord) + 1)
    counts = ImageCounts(
        int(is_asked.sum()),
        int(is_asked[held].sum()),
        {word.value: int(number) for word, number in zip(ImageWord, counted[1:], strict=True) if number},
    )
    found = np.flatnonzero(words)
    found = found[np.lexsort((found, words[found]))]
    findings = _findings(found, words, keys, latest, place, rows)
    there = np.flatnonzero(committed == Committed.PRESENT) if question.has_base else np.zeros(0, np.int64)
    src = pa.table([keys.take(pa.array(there)), digests.take(pa.array(content[there]))], schema=BASE_ROW)
    return ImageJudged(counts, findings, src)


def latest_keep(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Of IMAGE_ROW events those at their key's highest coordinate among them: all that a set of keys needs of them."""
    _, (codes,) = _coded([rows.column("key_hash")], DIGEST)
    position, ordinal = one_array(rows.column("position")), one_array(rows.column("ordinal"))
    highest = _highest(codes, position, ordinal)
    return rows if highest.all() else rows.filter(pa.array(highest))


def image_mismatches(
    history: pa.Table,
    delivered: pa.Table,
    base: pa.Table | None,
    frontier: Coordinate,
    scope: pa.Array | None = None,
) -> pa.Array:
    """The keys in scope whose delivered image is not the committed one, sorted; a null key last.

    `history` and `delivered`: position, ordinal, op, key, content_digest (text), entry (committed order; of events at
    one coordinate the later is the latest; null or missing: row order). `base`: key, content_digest. The floor does not
    apply. Where coordinate order is not each key's commit order the answer is unknown: the caller must not ask.
    """
    base = (
        base
        if base is not None
        else pa.table({"key": pa.array([], pa.string()), "content_digest": pa.array([], pa.string())})
    )
    sides = [history, delivered, base]
    keys, key_codes = _coded([side["key"] for side in sides])
    _, contents = _coded([side["content_digest"] for side in sides])
    based = np.full(len(keys), NO_EVENT, np.int64)
    based[key_codes[2]] = contents[2]
    images = [
        np.where(latest == NO_EVENT, based, latest)
        for latest in (
            _latest(side, frontier, codes, content, len(keys))
            for side, codes, content in zip(sides[:2], key_codes[:2], contents[:2], strict=True)
        )
    ]
    images = [np.where(image == NO_EVENT, ABSENCE, image) for image in images]
    committed = np.where(images[0] == ABSENCE, Committed.ABSENT, Committed.PRESENT)
    shown = np.where(images[0] == images[1], Shown.SAME, Shown.OTHER)
    shown = np.where(images[1] == ABSENCE, Shown.ABSENT, shown)
    differs = keys.filter(pa.array(_WORDS[committed, shown, 0] != 0))
    if scope is not None:
        differs = differs.filter(pc.is_in(differs, value_set=scope.cast(differs.type), skip_nulls=True))
    return differs.take(pc.sort_indices(differs))


def _latest(side: pa.Table, frontier: Coordinate, keys: np.ndarray, contents: np.ndarray, count: int) -> np.ndarray:
    """Each key's content by its latest event at or below the frontier."""
    latest = np.full(count, NO_EVENT, np.int64)
    position = one_array(side["position"])
    ordinal = one_array(side["ordinal"]) if "ordinal" in side.column_names else np.zeros(len(position), np.int64)
    place = np.arange(len(position))
    if "entry" in side.column_names and not side["entry"].null_count:
        place = one_array(side["entry"])
    rows = np.flatnonzero(at_or_below(position, ordinal, frontier))
    rows = rows[np.lexsort((place[rows], ordinal[rows], position[rows]))]
    is_delete = pc.equal(side["op"], "delete").to_numpy(zero_copy_only=False).astype(bool)
    latest[keys[rows]] = np.where(is_delete[rows], ABSENCE, contents[rows])  # in order: the last write stays
    return latest


def _latest_rows(
    codes: np.ndarray, position: np.ndarray, ordinal: np.ndarray, contents: np.ndarray, rows: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """By key the row of its latest event (-1: none), and whether another one lies at its coordinate with another content."""
    latest, is_tied = np.full(count, -1, np.int64), np.zeros(count, bool)
    rows = rows[_highest(codes[rows], position[rows], ordinal[rows])]
    latest[codes[rows]] = rows
    is_tied[codes[rows[contents[rows] != contents[latest[codes[rows]]]]]] = True
    return latest, is_tied


def _passed(
    codes: np.ndarray, position: np.ndarray, ordinal: np.ndarray, accepted: np.ndarray, latest: np.ndarray
) -> np.ndarray:
    """The keys of which an event was accepted that lies above the latest one held (-1: none is)."""
    mine = latest[codes[accepted]]
    is_above = (position[accepted] > position[mine]) | (
        (position[accepted] == position[mine]) & (ordinal[accepted] > ordinal[mine])
    )
    found: np.ndarray = np.unique(codes[accepted[is_above | (mine < 0)]])
    return found


def _highest(codes: np.ndarray, position: np.ndarray, ordinal: np.ndarray) -> np.ndarray:
    """Which rows lie at the highest coordinate of their key."""
    if not len(codes):
        return np.zeros(0, bool)
    count = int(codes.max()) + 1
    highest = np.full(count, np.iinfo(np.int64).min)
    np.maximum.at(highest, codes, position)
    is_highest = position == highest[codes]
    if ordinal.any():
        last = np.full(count, np.iinfo(np.int64).min)
        np.maximum.at(last, codes[is_highest], ordinal[is_highest])
        is_highest &= ordinal == last[codes]
    return is_highest


def _findings(
    found: np.ndarray, words: np.ndarray, keys: pa.Array, latest: np.ndarray, place: np.ndarray, rows: pa.Table
) -> pa.Table:
    names = pa.array([word.value for word in ImageWord], pa.string())
    columns: Mapping[str, pa.Array] = {
        "word": names.take(pa.array(words[found] - 1)),
        "key_hash": keys.take(pa.array(found)),
        **_taken(rows, latest[found], {"position": "position", "ordinal": "ordinal", "committed_digest": "digest"}),
        **_taken(rows, place[found], {"row_position": "position", "row_ordinal": "ordinal", "shown_digest": "digest"}),
    }
    return pa.table(shaped(columns, IMAGE_FINDING, len(found)), schema=IMAGE_FINDING)


def _taken(rows: pa.Table, at: np.ndarray, columns: Mapping[str, str]) -> dict[str, pa.Array]:
    """Columns of the rows at these places; null where that is -1."""
    indexes = pa.array(at, mask=at < 0)
    return {name: rows[column].combine_chunks().take(indexes) for name, column in columns.items()}


def _coded(columns: list[pa.ChunkedArray], type_: pa.DataType = TEXT) -> tuple[pa.Array, list[np.ndarray]]:
    """The distinct values of the columns together, and each column as indexes into them."""
    chunks = [chunk.cast(type_) for column in columns for chunk in pa.chunked_array(column).chunks]
    whole = pa.concat_arrays([pa.array([], type_), *chunks])
    coded = whole.dictionary_encode(null_encoding="encode")
    indexes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return coded.dictionary, np.split(indexes, np.cumsum([len(column) for column in columns])[:-1])
