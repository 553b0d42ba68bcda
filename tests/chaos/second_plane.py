"""The second control plane's own process: it registers the ends that stdin names, plans, approves, recovers, and tells.

`python -m tests.chaos.second_plane`, with its own DATABASE_URL. The last line on stdout is JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> None:
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command
    from django.utils import timezone

    from recovery_api.models import Pipeline
    from recovery_api.services.ends import sink_create, source_create
    from recovery_api.services.pipelines import pipeline_create
    from tests.integration.recovery.world import World

    asked = json.loads(sys.stdin.read())
    call_command("migrate", verbosity=0)
    now = timezone.now()
    pipeline = Pipeline.objects.first()
    if pipeline is None:
        source = source_create("orders", "postgresql_outbox", asked["source"], actor="eve", now=now)
        sink = sink_create("mail", "postgresql_kit", asked["sink"], actor="eve", now=now)
        pipeline = pipeline_create("orders-mail", source, sink, actor="eve", now=now, options={"claim_wait_seconds": 3})
    reach = [Path(asked[end]["connection"].removeprefix("file:")).read_text() for end in ("source", "sink")]
    Path(settings.FENCEPOST_EVIDENCE_DIR).mkdir(parents=True, exist_ok=True)
    recovery = World(*reach, asked["source"], asked["sink"], pipeline).recover()
    first = recovery.generations.order_by("number").values_list("number", flat=True).first()
    print(json.dumps({"outcome": recovery.outcome, "first_generation": first, "says": recovery.says}))


if __name__ == "__main__":
    main()
