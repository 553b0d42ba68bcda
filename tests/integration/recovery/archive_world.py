"""An archived pipeline of the numbered outbox, what it loses, and where its files lie."""

from __future__ import annotations

from pathlib import Path

from recovery_api.models import ArchivePart
from recovery_api.selectors.archives import archive_folder
from tests.integration.recovery.test_grounds import deliver
from tests.integration.recovery.test_ledger import KEYS, commit, purge
from tests.integration.recovery.world import World


def with_losses_purged(world: World) -> None:
    """Nine events, of which e2 and e7 never arrived and are found missing; then the source drops both, and e1."""
    commit(world, KEYS)
    deliver(world, [key for key in KEYS if key not in ("e2", "e7")])
    audit = world.audit()
    assert (audit.status, audit.lost_count) == ("owed", 2), audit.says
    purge(world, "e1", "e2", "e7")


def parts(world: World) -> list[ArchivePart]:
    return list(ArchivePart.objects.filter(pipeline=world.pipeline).order_by("id"))


def path_of(world: World, part: ArchivePart) -> Path:
    return archive_folder(world.pipeline.pk) / part.file


def floor_says(plan: object) -> str:
    condition = next(one for one in plan.conditions if one["name"] == "floor")  # type: ignore[attr-defined]
    assert condition["holds"] is False
    return f"{condition['says']} {condition['remedy']}"
