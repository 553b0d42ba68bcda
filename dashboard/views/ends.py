"""Sources and sinks: what is registered."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from recovery_api.selectors.ends import sink_list as sinks
from recovery_api.selectors.ends import source_list as sources


def source_list(request: HttpRequest) -> HttpResponse:
    return render(request, "end_list.html", {"word": "source", "ends": sources()})


def sink_list(request: HttpRequest) -> HttpResponse:
    return render(request, "end_list.html", {"word": "sink", "ends": sinks()})
