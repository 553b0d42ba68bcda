"""May this be purged? Asked of a source, answered from what is known of every pipeline that reads it."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from recovery_api.purge_rows import purge_as_row
from recovery_api.schema import operation
from recovery_api.selectors.ends import source_get
from recovery_api.selectors.purging import below_check, purge_check
from recovery_api.serializers.fields import Query, Text
from recovery_api.serializers.purging import PurgeShape
from recovery_api.views.base import ApiView, answer


class PurgeQuery(Query):
    below = Text(help_text="A coordinate in the source's spelling, lane=coordinate for several lanes.")


class SourcePurgeCheck(ApiView):
    query_class = PurgeQuery

    @operation(
        "show_purge_check",
        "Whether what lies at or below a coordinate may be purged at the source.\n\nOnly `yes` lets it go. The transaction "
        "is for a person to run: nothing here deletes anything.",
        answer=PurgeShape,
        query=PurgeQuery,
        is_named=True,
        errors=[404, 422],
        tag="sources",
    )
    def get(self, request: Request, name: str) -> Response:
        return answer(purge_as_row(purge_check(source_get(name), below_check(self.asked.get("below")))))
