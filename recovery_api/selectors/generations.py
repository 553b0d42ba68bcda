"""Reads of generations and claims, as the sink last said them."""

from __future__ import annotations

from django.db.models import QuerySet

from recovery_api.models import Claim, Generation, Pipeline


def generation_list(pipeline: Pipeline) -> QuerySet[Generation]:
    """Newest first."""
    return Generation.objects.filter(pipeline=pipeline).select_related("pipeline").order_by("-number")


def claim_list(pipeline: Pipeline) -> QuerySet[Claim]:
    """Newest first."""
    return Claim.objects.filter(pipeline=pipeline).select_related("pipeline__source").order_by("-generation")
