"""`manage.py check_engine`: what Spark's executors lack of what our work needs, in sentences."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django.core.management.base import CommandParser

from recovery_api.domain.errors import EngineLacks
from recovery_api.domain.kinds import kind_get
from recovery_api.management.base import DONE, OWED, FencepostCommand, Shown
from recovery_api.models import Pipeline, Sink, Source
from recovery_api.selectors.ends import pipeline_get
from recovery_api.selectors.evidence_places import store_url
from workers.evidence.ranges import EndSpec
from workers.spark.checking import Reached, reach_check
from workers.spark.session import engine_errors_mapped, session_get
from workers.spark.shipping import code_archive, executors_look, lacks_of


class Command(FencepostCommand):
    help = (
        "What Spark's executors lack: Python, packages, our code, the store of evidence, a credential, the way to an end."
        " Of the pipelines that are named, or of all. Ends with 0 where nothing is lacking, 1 where something is, 3 where the"
        " engine does not answer."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("pipeline", nargs="*", help="whose ends are tried (all that are not retired)")

    def answer(self, now: datetime, **options: Any) -> Shown:
        pipelines = [pipeline_get(name) for name in options["pipeline"]] or list(
            Pipeline.objects.filter(retired_at__isnull=True).select_related("source", "sink")
        )
        try:
            session = session_get()
            with engine_errors_mapped():
                looks = executors_look(session, code_archive().name)
            reached = reach_check(session, store_url(), *_ends(pipelines))
        except EngineLacks as error:
            return Shown({"lacks": [error.data["lacks"]], "executors": []}, [error.data["lacks"]], OWED)
        lacks = [*lacks_of(looks), *(sentence for one in reached for sentence in _problems(one))]
        python = ", ".join(sorted({one["python"] for one in looks}))
        where = urlsplit(os.environ.get("SPARK_REMOTE", "")).netloc
        well = [
            f"Spark answers at {where}: {len(looks)} executors were looked at, with Python {python}.",
            *(f"Executors reach {one.what}." for one in reached if not one.problems),
        ]
        body = {"lacks": lacks, "reached": [one.what for one in reached if not one.problems], "executors": looks}
        said = lacks or ["Nothing is lacking."]
        return Shown(body, [*well, *said], OWED if lacks else DONE)


def _ends(pipelines: list[Pipeline]) -> tuple[dict[str, EndSpec], dict[str, EndSpec]]:
    """What tasks open, by name: ends that live in one process are not among it."""
    return _specs([one.source for one in pipelines]), _specs([one.sink for one in pipelines])


def _specs(ends: Sequence[Source | Sink]) -> dict[str, EndSpec]:
    return {end.name: EndSpec(end.kind, end.options) for end in ends if not kind_get(end.kind).is_in_process}


def _problems(one: Reached) -> list[str]:
    return [
        f"An executor does not reach {one.what}: {text} ({', '.join(hosts)})" for text, hosts in one.problems.items()
    ]
