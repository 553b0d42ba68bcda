"""What each key holds at a frontier, and where the store's image differs from the committed one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recovery_api.domain.coordinates import Coordinate
from workers.evidence.kernel.questions import at_or_below, one_array

NO_EVENT, ABSENCE = -2, -1


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
    shown = np.full(len(keys), NO_EVENT, np.int64)
    shown[key_codes[2]] = contents[2]
    images = [
        np.where(latest == NO_EVENT, shown, latest)
        for latest in (
            _latest(side, frontier, codes, content, len(keys))
            for side, codes, content in zip(sides[:2], key_codes[:2], contents[:2], strict=True)
        )
    ]
    images = [np.where(image == NO_EVENT, ABSENCE, image) for image in images]
    differs = keys.filter(pa.array(images[0] != images[1]))
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


def _coded(columns: list[pa.ChunkedArray]) -> tuple[pa.Array, list[np.ndarray]]:
    """The distinct values of the columns together, and each column as indexes into them."""
    chunks = [chunk.cast(pa.string()) for column in columns for chunk in pa.chunked_array(column).chunks]
    whole = pa.concat_arrays([pa.array([], pa.string()), *chunks])
    coded = whole.dictionary_encode(null_encoding="encode")
    indexes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return coded.dictionary, np.split(indexes, np.cumsum([len(column) for column in columns])[:-1])
