"""A folder of JSON lines, a file a commit, put there whole; and one file that grows."""

from __future__ import annotations

import functools
import json
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.contract.benches import Place
from workers.connectors.protocols.source import Source
from workers.connectors.registry import source_make

CANNOT: dict[str, str] = {}


def line(event: Mapping[str, Any]) -> str:
    names = {"lane": "lane", "op": "op", "key": "key", "event_id": "event_id"}
    said = {"coordinate": event["position"], **{name: event[of] for name, of in names.items()}}
    told = '"value_text": null' if event["content"] is None else f'"value": {event["content"]}'
    return f"{json.dumps(said)[:-1]}, {told}}}\n"


class ArchiveBench:
    def __init__(self, place: Place, is_growing: bool = False) -> None:
        self.folder, self.is_growing = place.folder / secrets.token_hex(4), is_growing
        self.folder.mkdir()
        self.written: list[tuple[Path, list[Mapping[str, Any]]]] = []

    def connector(self) -> Source:
        return source_make(
            "archive_files", {"folder": str(self.folder), "pattern": "*.jsonl", "is_written_in_order": True}
        )

    def commit(self, events: Iterable[Mapping[str, Any]]) -> None:
        held = list(events)
        if self.is_growing:
            self._put(self.folder / "log.jsonl", [*(self.written[0][1] if self.written else []), *held])
        else:
            self._put(self.folder / f"{len(self.written):05d}.jsonl", held)

    def alter(self, events: Iterable[Mapping[str, Any]]) -> None:
        for event in events:
            for path, held in self.written:
                if any(one["position"] == event["position"] for one in held):
                    self._put(path, [event if one["position"] == event["position"] else one for one in held])
                    break
            else:
                self.commit([event])

    def _put(self, path: Path, events: list[Mapping[str, Any]]) -> None:
        self.written = [one for one in self.written if one[0] != path] + [(path, events)]
        if self.is_growing and path.exists():
            old, new = path.read_text(), "".join(map(line, events))
            if new.startswith(old):
                with path.open("a") as file:
                    file.write(new[len(old) :])
                return
        hidden = path.with_name(f".{path.name}")
        hidden.write_text("".join(map(line, events)))
        hidden.replace(path)


MAKES = {"": ArchiveBench, "that grow": functools.partial(ArchiveBench, is_growing=True)}
