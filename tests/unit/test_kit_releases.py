"""Each version of the kit is frozen as it was released: what lies in somebody's sink is one of these texts, for good."""

from __future__ import annotations

import hashlib

from workers.connectors.sinks.kit import FOLLOWED_INDEX, KIT_VERSION, TODAY, part_frozen, parts_all
from workers.connectors.sinks.kit.releases import FOLDER, releases, releases_of, renderings_make
from workers.connectors.sinks.kit.versions import FACTS_TABLE

FREEZE = "raise KIT_VERSION and run: make kit-release"


def test_r7_todays_kit_is_the_text_that_was_released_under_its_version() -> None:
    newest = releases()[-1]
    assert newest.version == KIT_VERSION
    assert newest.renderings == renderings_make(TODAY), FREEZE
    assert set(newest.files) == set(parts_all()), FREEZE
    for part in parts_all():
        assert newest.text.read(part) == part_frozen(part), (part, FREEZE)


def test_r7_no_released_text_has_changed() -> None:
    for release in releases():
        assert renderings_make(release.text) == release.renderings, release.name
    for path in (FOLDER / "parts").glob("*.sql"):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert path.stem.rpartition("-")[2] == digest[:8], path.name


def test_r7_every_text_that_was_ever_installed_is_kept() -> None:
    """Nine texts called themselves version 1, three version 2, three version 3; a version is one text since."""
    assert [len(releases_of(version)) for version in (1, 2, 3)] == [9, 3, 3]
    assert all(len(releases_of(version)) == 1 for version in range(4, KIT_VERSION + 1))
    assert len({tuple(release.renderings.items()) for release in releases()}) == len(releases())
    used = {name for release in releases() for name in release.files.values()}
    assert used == {path.stem for path in (FOLDER / "parts").glob("*.sql")}


def test_the_index_that_an_upgrade_makes_afterwards_is_the_texts_own() -> None:
    assert f"CREATE INDEX {FOLLOWED_INDEX} ON {{schema}}.accepted " in TODAY.read("schema")


def test_r7_each_version_keeps_its_facts_in_a_table_that_no_earlier_text_reads() -> None:
    """So a call that waited inside an older text fails after an upgrade."""
    assert FACTS_TABLE[KIT_VERSION] not in {FACTS_TABLE[release.version] for release in releases()[:-1]}
    assert f"{{schema}}.{FACTS_TABLE[KIT_VERSION]} (" in TODAY.read("schema")
