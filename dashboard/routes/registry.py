"""What is registered: sources, sinks, pipelines."""

from django.urls import path

from dashboard.views import ends

urlpatterns = [
    path("sources/", ends.source_list, name="source-list"),
    path("sinks/", ends.sink_list, name="sink-list"),
]
