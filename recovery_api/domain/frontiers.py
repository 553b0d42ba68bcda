"""A frontier of one or several lanes: parsed from what a person types, kept as a row, printed back.

As a row it is `{lane: {"position": "..", "ordinal": ".."}}`: held numbers as text, so that no reader rounds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recovery_api.domain.coordinates import Coordinate, Spelling, coordinate_format, coordinate_parse
from recovery_api.domain.errors import BadInput

SINGLE_LANE = "0"
"""The lane of a source that has one: a plain table, a file without a lane column."""

FrontierRow = dict[str, dict[str, str]]


def coordinate_as_row(coordinate: Coordinate) -> dict[str, str]:
    return {"position": str(coordinate.position), "ordinal": str(coordinate.ordinal)}


def coordinate_from_row(row: Mapping[str, Any], field: str = "coordinate") -> Coordinate:
    """Raises: BadInput where the row has other members, or one is not a whole number."""
    if set(row) != {"position", "ordinal"}:
        raise BadInput(field, f"has {sorted(row)}", "A coordinate has exactly position and ordinal, both as held.")
    try:
        return Coordinate(int(row["position"]), int(row["ordinal"]))
    except (TypeError, ValueError) as error:
        raise BadInput(field, "is not a pair of whole numbers", "Both are signed 64-bit numbers as text.") from error


def frontier_parse(text: str, spelling: Spelling, field: str = "frontier") -> dict[str, Coordinate]:
    """The frontier that `text` spells: one coordinate for the lane `0`, or `lane=coordinate` separated by commas.

    >>> frontier_parse("42", Spelling.BIGINT)
    {'0': Coordinate(position=42, ordinal=0)}
    >>> sorted(frontier_parse("a=1,b=2", Spelling.BIGINT))
    ['a', 'b']

    Raises: BadCoordinate, BadInput for an empty text and for a lane named twice.
    """
    if not text.strip():
        raise BadInput(field, "is empty", "Leave it out to judge at the safe frontier, or give a coordinate.")
    if "=" not in text:
        return {SINGLE_LANE: coordinate_parse(text, spelling, field)}
    found: dict[str, Coordinate] = {}
    for part in text.split(","):
        lane, is_pair, words = part.strip().rpartition("=")
        if not is_pair or not lane:
            raise BadInput(field, f"{part.strip()!r} names no lane", "Write lane=coordinate, separated by commas.")
        if lane in found:
            raise BadInput(field, f"lane {lane!r} is given twice", "Give each lane once.")
        found[lane] = coordinate_parse(words, spelling, f"{field}, lane {lane}")
    return found


def frontier_as_row(frontier: Mapping[str, Coordinate]) -> FrontierRow:
    return {lane: coordinate_as_row(coordinate) for lane, coordinate in frontier.items()}


def frontier_from_row(row: Mapping[str, Any]) -> dict[str, Coordinate]:
    return {lane: coordinate_from_row(of_lane, f"frontier, lane {lane}") for lane, of_lane in row.items()}


def frontier_format(row: Mapping[str, Any], spelling: Spelling) -> str:
    """A frontier row in the source's spelling; one lane named `0` prints as its bare coordinate.

    >>> frontier_format({"0": {"position": "42", "ordinal": "0"}}, Spelling.BIGINT)
    '42'
    """
    spelled = {lane: coordinate_format(found, spelling) for lane, found in frontier_from_row(row).items()}
    if list(spelled) == [SINGLE_LANE]:
        return spelled[SINGLE_LANE]
    return ",".join(f"{lane}={words}" for lane, words in sorted(spelled.items()))
