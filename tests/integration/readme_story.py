"""README's worked incident: what a real run of the demo told. A test compares the two, `make readme` writes it anew.

Numbers, ids and digests differ from run to run, and with them where lines break; words do not.
"""

from __future__ import annotations

import re
from pathlib import Path

from workers.demo.narrator import PROGRESS

README = Path(__file__).parents[2] / "README.md"
BEGIN, END = "<!-- the demo's own words: make readme -->\n", "<!-- until here -->\n"
WIDEST = 118
"""A longer line of the run (a command with its files) is broken for README."""


def story_of(stderr: str, stdout: str, *, prefix: str, directory: Path) -> str:
    """The told story and its JSON, as with no prefix and with `var/` as the directory. Progress is no part of it."""
    kept = [line for line in stderr.splitlines() if not line.startswith(PROGRESS.rstrip("\n"))]
    began = next(number for number, line in enumerate(kept) if line.startswith(" 1. "))
    told = "\n".join([*kept[began:], *stdout.strip().splitlines()])
    for name in (prefix, prefix.replace("_", "-")):
        told = told.replace(name, "")
    return told.replace(f"{directory}/", "var/")


def readme_story() -> str:
    """The story as README has it, without its indent."""
    text = README.read_text(encoding="utf-8")
    block = text[text.index(BEGIN) + len(BEGIN) : text.index(END)]
    return "\n".join(line.removeprefix("    ") for line in block.splitlines()).strip("\n")


def readme_write(story: str) -> None:
    text = README.read_text(encoding="utf-8")
    lines = [broken for line in story.splitlines() for broken in _broken(line)]
    block = "\n".join(f"    {line}".rstrip() for line in lines)
    written = f"{text[: text.index(BEGIN)]}{BEGIN}\n{block}\n\n{text[text.index(END) :]}"
    README.write_text(written, encoding="utf-8")


def normal(story: str) -> str:
    """The words alone: ids, digests and numbers by what they are, any run of white space and any broken line as one."""
    story = story.replace("\\\n", " ")
    story = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", story)
    story = re.sub(r"[0-9a-f]{64}", "DIGEST", story)
    return re.sub(r"\s+", " ", re.sub(r"\d[\d,.]*\d|\d", "N", story)).strip()


def _broken(line: str) -> list[str]:
    """A long command over several lines, as a shell takes it."""
    if len(line) <= WIDEST or not line.lstrip().startswith("$ "):
        return [line]
    indent = " " * (len(line) - len(line.lstrip()))
    found, current = [], ""
    for word in line.split(" "):
        if current.strip() and len(f"{current} {word}") > WIDEST - 2:
            found.append(f"{current} \\")
            current = f"{indent}      {word}"
        else:
            current = f"{current} {word}" if current else word or " "
    return [_unspaced(one, indent) for one in (*found, current)]


def _unspaced(line: str, indent: str) -> str:
    return line if line.startswith(f"{indent}    ") else indent + line.lstrip()
