"""Frontiers, floors and omissions as a person types them for one lane or several, resolved once the spelling is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from recovery_api.domain.coordinates import (
    UINT64_MAX,
    Coordinate,
    Spelling,
    coordinate_format,
    coordinate_parse,
)
from recovery_api.domain.errors import BadInput
from recovery_api.domain.gtids import Spans, gtid_set
from workers.evidence.files import SpellingSigns
from workers.evidence.kernel.questions import coordinate_max

END = "end"
"""The frontier that is the history's own last coordinate: everything that the export holds."""

EVERY_LANE = ""


@dataclass(frozen=True)
class Bounds:
    """As typed: by lane, or by EVERY_LANE where none was named."""

    frontiers: dict[str, str]
    floors: dict[str, str]
    omitted: tuple[tuple[str, str], ...]

    def check(self, lanes: Sequence[str]) -> None:
        """Raises: BadInput where a coordinate is given for no lane in particular and there are several, or for none."""
        for option, given in (("--frontier", self.frontiers), ("--floor", self.floors)):
            plain = given.get(EVERY_LANE)
            if len(lanes) > 1 and plain not in (None, END):
                raise BadInput(
                    option,
                    f"the files hold lanes {', '.join(lanes)}, and a verdict is of one lane at its own coordinate",
                    f"Give one for each, {option} {lanes[0]}=COORDINATE{', or --frontier end' if END else ''}.",
                )
            if unknown := sorted(set(given) - {EVERY_LANE, *lanes}):
                raise BadInput(option, f"no file holds a lane {unknown[0]!r}", f"They hold {', '.join(lanes)}.")
        missing = [lane for lane in lanes if lane not in self.frontiers and EVERY_LANE not in self.frontiers]
        if missing:
            raise BadInput("--frontier", f"lane {missing[0]!r} has none", "Give one for each lane, or `end`.")
        if len(lanes) > 1 and any(lane == EVERY_LANE for lane, _ in self.omitted):
            raise BadInput("--omissions", "name no lane, and there are several", "Write LANE=COORDINATE.")

    def frontier(self, lane: str, spelling: Spelling, position: np.ndarray, ordinal: np.ndarray | None) -> Coordinate:
        """Raises: BadCoordinate; BadInput where it names no event, or several."""
        text = self.frontiers.get(lane, self.frontiers.get(EVERY_LANE, END))
        if text == END:
            found = coordinate_max(position, ordinal)
            if found is None:
                raise BadInput("--frontier", "the history is empty, so it has no end", "Give a coordinate.")
            return found
        if spelling is Spelling.STREAM_ID and text.isdigit():
            text = f"{text}-{UINT64_MAX}"
        if spelling is Spelling.COMMIT_LSN and ":" not in text:
            return _by_own_position(text, position, ordinal)
        return coordinate_parse(text, spelling, "--frontier")

    def floor(self, lane: str, spelling: Spelling) -> Coordinate | None:
        """Raises: BadCoordinate."""
        text = self.floors.get(lane, self.floors.get(EVERY_LANE))
        if text is None:
            return None
        if spelling is Spelling.STREAM_ID and text.isdigit():
            text = f"{text}-0"
        if spelling is Spelling.COMMIT_LSN and ":" not in text:
            text = f"{text}:0"
        return coordinate_parse(text, spelling, "--floor")

    def omissions(self, lane: str, spelling: Spelling) -> list[Coordinate]:
        """Raises: BadCoordinate."""
        return [
            coordinate_parse(text, spelling, f"omission {place}")
            for place, (of, text) in enumerate(self.omitted, 1)
            if of in (EVERY_LANE, lane)
        ]


def bounds_parse(
    frontier: str | Sequence[str], floor: str | Sequence[str] | None, omissions: Sequence[str], signs: SpellingSigns
) -> Bounds:
    """What was typed; coordinates' shapes go to `signs`. Raises: BadInput, BadCoordinate."""
    omitted = []
    for place, text in enumerate(omissions, 1):
        lane, _, words = str(text).rpartition("=")
        signs.see(words.strip(), f"omission {place}")
        omitted.append((lane.strip(), words.strip()))
    floors = _by_lane(floor or (), "--floor", signs)
    plain: list[str] = []
    for text in [frontier] if isinstance(frontier, str) else frontier:
        servers = gtid_set(text)
        plain += [text] if servers is None else _executed(servers, floors)
    return Bounds(_by_lane(plain, "--frontier", signs), floors, tuple(omitted))


def _executed(servers: Mapping[str, Spans], floors: Mapping[str, str]) -> list[str]:
    """A set of executed GTIDs as a frontier of each server. Raises: BadInput where it has holes, and so is none."""
    for server, spans in servers.items():
        floor = floors.get(server, "1")
        if len(spans) != 1 or spans[0][0] > (int(floor) if floor.isdigit() else 1):
            held = " and ".join(f"{first} to {last}" if last > first else f"{first}" for first, last in spans)
            raise BadInput(
                "--frontier",
                f"the GTID set has holes: of {server} it holds {held or 'nothing'}",
                f"A frontier is a number up to which everything was committed: give {server}=NUMBER, and the server's "
                "--floor where it has purged what lies below.",
            )
    return [f"{server}={spans[0][1]}" for server, spans in servers.items()]


def _by_lane(given: str | Sequence[str], option: str, signs: SpellingSigns) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in [given] if isinstance(given, str) else given:
        for part in text.split(",") if "=" in text else [text]:
            lane, _, words = part.strip().rpartition("=")
            lane, words = lane.strip(), words.strip()
            if lane in found:
                raise BadInput(option, f"lane {lane!r} is given twice" if lane else "is given twice", "Give each once.")
            if words != END or option != "--frontier":
                signs.see(words, option)
            found[lane] = words
    return found


def _by_own_position(text: str, position: np.ndarray, ordinal: np.ndarray | None) -> Coordinate:
    """The coordinate of the event whose own log position this is: alone it has no place in the order of commits."""
    own = coordinate_parse(text, Spelling.PG_LSN, "--frontier").position + 2**63
    at = np.flatnonzero((np.zeros_like(position) if ordinal is None else ordinal) == own)
    found = sorted({Coordinate(int(position[place]), own) for place in at})
    if len(found) == 1:
        return found[0]
    spelled = ", ".join(coordinate_format(one, Spelling.COMMIT_LSN) for one in found[:5])
    problem = f"{text} alone is the position of {f'several events: {spelled}' if found else 'no event'}"
    raise BadInput("--frontier", problem, "Positions interleave: give commit and position, like 0/1782E38:0/1782EA0.")
