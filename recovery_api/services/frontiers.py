"""What a person typed as a frontier, checked against the source it is for."""

from __future__ import annotations

from recovery_api.domain.frontiers import FrontierRow, frontier_as_row, frontier_parse
from recovery_api.models import Pipeline
from recovery_api.selectors.ends import source_spelling


def frontier_check(pipeline: Pipeline, frontier: str | None) -> FrontierRow | None:
    """The frontier as a row; None stays None: the safe frontier. Raises: BadCoordinate, BadInput."""
    if frontier is None:
        return None
    return frontier_as_row(frontier_parse(frontier, source_spelling(pipeline.source)))
