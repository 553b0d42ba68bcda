"""What the archive holds of a pipeline. Contents are read event by event, by who may (event-reads)."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.archive_rows import archive_as_row
from recovery_api.schema import operation
from recovery_api.selectors.ends import pipeline_get
from recovery_api.serializers.archives import ArchiveShape
from recovery_api.views.base import ApiView, answer


class PipelineArchive(ApiView):
    @operation(
        "show_archive",
        "What the archive holds, and until when.\n\nWhat audits read of the source, contents included. No content is told.",
        answer=ArchiveShape,
        is_named=True,
        errors=[404],
        tag="ledger",
    )
    def get(self, request: Request, name: str) -> Response:
        return answer(archive_as_row(pipeline_get(name)))
