"""How the contents of a connection test's sample rows begin: masked until somebody who may asks, and then logged."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache

from dashboard.access import actor
from dashboard.views.errors import errors_shown
from recovery_api.selectors.findings import sample_contents_get
from recovery_api.services.event_reads import sample_contents_read


@never_cache
@errors_shown
def sample_contents(request: HttpRequest, intent_id: UUID) -> HttpResponse:
    """Posted, for it is an event: the sample with the beginnings of its contents, in the answer and nowhere else."""
    content = sample_contents_get(intent_id)
    intent = content.intent
    end = intent.source or intent.sink
    context = {
        "intent": intent,
        "end": end,
        "word": "source" if intent.source else "sink",
        "sample": sample_contents_read(content, actor=actor(request), now=timezone.now()),
    }
    return render(request, "ends/contents.html", context)
