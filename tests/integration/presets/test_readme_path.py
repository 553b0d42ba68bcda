"""README's path for newcomers, command by command as it stands there.

Only where the connection strings are kept differs: this run's Spark was there before its databases.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from recovery_api.presets import preset_get
from tests.integration.presets.library_table import LOST, SENT, Shop
from tests.integration.presets.test_command import run

README = Path(__file__).resolve().parents[3] / "README.md"


def commands() -> list[list[str]]:
    """The words of each command of the section, without the program's name."""
    section = README.read_text(encoding="utf-8").partition("## From a library's table to the first audit")[2]
    block = section.partition("\n## ")[0].replace("\\\n", " ")
    return [shlex.split(found) for found in re.findall(r"^    \./fencepost (.*)$", block, re.M)]


def test_three_commands_lead_from_a_preset_to_the_first_audit(shop: Shop, spark: object) -> None:
    marten = preset_get("marten")
    shop.make(marten)
    shop.fill(marten)
    shop.accept(marten, SENT)
    shop.run.execute("ALTER TABLE letters RENAME TO arrived")
    shop.run.execute("ALTER TABLE arrived RENAME COLUMN at_0 TO seq_id")
    shop.run.execute('ALTER TABLE arrived RENAME COLUMN "key" TO stream_id')
    shop.run.execute("ALTER TABLE arrived RENAME COLUMN content TO data")
    kept = re.compile(r"env:FENCEPOST_END_(SHOP|MAIL)$")
    source, sink, pipeline = [[kept.sub(shop.connection, word) for word in words] for words in commands()]
    assert run(*source)[0] == 0
    assert run(*sink)[0] == 0
    code, said, err = run(*pipeline)
    assert (code, f"{len(LOST)} of 6 events up to 7 never reached the sink" in said) == (1, True), (said, err)
