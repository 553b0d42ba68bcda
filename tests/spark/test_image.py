"""An image audit on the engine finds what it finds in one process, with keys in many sets and errors as rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from recovery_api.models import ImageAudit
from tests.integration.recovery.test_image import at_target, compare, mapped_make, named, source
from workers.evidence import image

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def _settings(settings: Any, tmp_path: Path) -> None:
    settings.REDIS_URL = ""
    settings.FENCEPOST_EVIDENCE_DIR = tmp_path / "evidence"


def test_the_engine_finds_what_one_process_finds(
    transactional_db: None,
    database_factory: Callable[[str], str],
    tmp_path: Path,
    spark: Any,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = mapped_make(database_factory, tmp_path)
    source(
        world,
        """INSERT INTO outbox (op, "key", content) SELECT CASE WHEN i > 280 THEN 'delete' ELSE 'update' END, 'k' || i % 100,
            CASE WHEN i <= 280 THEN jsonb_build_object('n', i) END FROM generate_series(1, 300) i""",
    )
    at_target(
        world,
        """INSERT INTO mail SELECT 'k' || i % 100, jsonb_build_object('n', i) FROM generate_series(200, 290) i
            WHERE i <> 207""",
    )
    monkeypatch.setattr(image, "PIECE_ROWS", 40)
    monkeypatch.setattr(image, "SET_ROWS", 50)
    found = []
    for rows in (50_000, 0):
        settings.FENCEPOST_IN_PROCESS_ROWS = rows
        found.append(compare(world, keeps_base=True))
        ImageAudit.objects.update(base_digest="")  # else the second goes on from the first one's
    here, engine = found
    assert engine.intent.spark_session_id and not here.intent.spark_session_id
    assert (here.says, here.counts, here.keys_count) == (engine.says, engine.counts, engine.keys_count)
    assert here.counts == {"missing": "1", "extra": "11"}, here.says
    assert (
        named(engine)
        == named(here)
        == {("missing", "k7"), *(("extra", f"k{number}") for number in (0, *range(81, 91)))}
    )
    parts = {one.pk: sorted(Path(one.evidence_uri).glob("base-*.parquet")) for one in found}
    assert len(parts[here.pk]) == 1 < len(parts[engine.pk])
    bases = [set(ds.dataset(list(map(str, parts[one.pk]))).to_table()["key_hash"].to_pylist()) for one in found]
    assert bases[0] == bases[1] and len(bases[0]) == 80
    source(world, "UPDATE outbox SET op = 'no such op' WHERE id = 150")
    world.pipeline.source.options = {
        **world.pipeline.source.options,
        "op_values": {"update": "update", "delete": "delete"},
    }
    world.pipeline.source.save()
    assert "none of delete, update" in compare(world).says
