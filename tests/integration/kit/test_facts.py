"""What each released text installs, written down in `released/facts.json`: made again here, and the same.

`make kit-release` writes it anew after it has frozen a new text.
"""

from __future__ import annotations

import json
import os

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.contract.sink_engines import kit_make
from workers.connectors.sinks.kit import kit_sql, names_get
from workers.connectors.sinks.kit.expected import REFERENCE_WAIT_SECONDS, differences, facts_of
from workers.connectors.sinks.kit.facts import installed_read
from workers.connectors.sinks.kit.releases import FOLDER, releases

pytestmark = pytest.mark.slow

PREPARE = """
    CREATE TABLE IF NOT EXISTS facts_letters (id text PRIMARY KEY, body jsonb);
    CREATE OR REPLACE FUNCTION facts_effect(lane text, "position" bigint, ordinal bigint, op text, key text, content jsonb)
    RETURNS void LANGUAGE sql AS 'SELECT'"""
EFFECTS = {
    "none": {},
    "target": {"target": "facts_letters", "target_key": "id", "target_content": "body"},
    "function": {"effect_function": "facts_effect", "effect_order": "guarded"},
}


def test_r6_facts_of_every_release_are_what_its_text_installs(kit_dsn: str) -> None:
    database = str(conninfo_to_dict(kit_dsn)["dbname"])
    found: dict[tuple[str, str], dict[str, str]] = {}
    with psycopg.connect(kit_dsn, autocommit=True) as admin:
        admin.execute(PREPARE)
        for effect, options in EFFECTS.items():
            kit = kit_make(
                schema="facts of", prefix=f"{database}_facts", lock_wait_seconds=REFERENCE_WAIT_SECONDS, **options
            )
            for release in releases():
                with admin.transaction(force_rollback=True):
                    admin.execute(kit_sql(kit, database, release.text))  # type: ignore[call-overload]
                    installed = installed_read(admin, kit, names_get(kit, database))
                    found[release.name, effect] = dict(installed.facts)
                    if not os.environ.get("FENCEPOST_WRITE_FACTS"):
                        assert differences(installed, kit, database, release.version) == []
    if os.environ.get("FENCEPOST_WRITE_FACTS"):
        _written(found)
    for (release_name, effect), facts in found.items():
        assert facts == facts_of(release_name, effect), (release_name, effect)


def _written(found: dict[tuple[str, str], dict[str, str]]) -> None:
    """Each entry says what changed since the one before it."""
    rows, before = [], {}
    for (release, effect), facts in found.items():
        changed = {name: fact for name, fact in facts.items() if before.get(name) != fact}
        rows.append({"release": release, "effect": effect, "gone": sorted({*before} - {*facts}), "facts": changed})
        before = facts
    (FOLDER / "facts.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    facts_of.cache_clear()
