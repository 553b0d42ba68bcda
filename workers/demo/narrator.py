"""The voice: numbered steps, sentences with numbers, wrapped to the terminal. What it says is never parsed."""

from __future__ import annotations

import shutil
import textwrap
from typing import TextIO

from recovery_api.domain.visible import visible

WIDEST = 110
PROGRESS = "      … "
"""How a line of progress begins."""


class Narrator:
    """Tells a story to one stream, step by step."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._step = 0
        self._width = min(WIDEST, shutil.get_terminal_size((WIDEST, 40)).columns)

    def step(self, title: str) -> None:
        self._step += 1
        self._write(f"\n{self._step:>2}. {title}")

    def say(self, text: str) -> None:
        self._write(textwrap.fill(text, self._width, initial_indent="    ", subsequent_indent="    "))

    def table(self, rows: list[tuple[str, object]]) -> None:
        """Names and numbers in two columns."""
        widest = max(len(name) for name, _ in rows)
        for name, value in rows:
            self._write(f"      {name:<{widest}}  {value}")

    def command(self, line: str) -> None:
        self._write(f"    $ {line}")

    def progress(self, text: str) -> None:
        """How far something is that takes its time. Said for whoever watches; no part of the story."""
        self._write(f"{PROGRESS}{text}")

    def _write(self, text: str) -> None:
        self._stream.write(visible(text) + "\n")
        self._stream.flush()
