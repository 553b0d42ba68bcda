"""What is registered: sources, sinks, pipelines."""

from django.urls import path

import recovery_api.converters  # noqa: F401  registers `end_name`
from dashboard.views import drills, ends, pipeline_registry, registering, samples, sink_install, sink_readings

urlpatterns = [
    path("add/pipeline/", pipeline_registry.add, name="pipeline-add"),
    path("pipelines/<end_name:name>/edit/", pipeline_registry.edit, name="pipeline-edit"),
    path("pipelines/<end_name:name>/retire/", pipeline_registry.retire, name="pipeline-retire"),
    path("sinks/<end_name:name>/install/", sink_install.install, name="sink-install"),
    path("add/sink/found/<uuid:intent_id>/install/", sink_install.install_first, name="sink-install-first"),
    path("sinks/<end_name:name>/read/", sink_readings.read, name="sink-read"),
    path("sinks/<end_name:name>/drill/", drills.drill, name="sink-drill"),
    path("sinks/<end_name:name>/drills/", drills.drills, name="sink-drills"),
    path("sinks/<end_name:name>/reading/", sink_readings.reading, name="sink-reading"),
    path("sinks/<end_name:name>/settle/", ends.sink_settle, name="sink-settle"),
]
urlpatterns += [path("tests/<uuid:intent_id>/contents/", samples.sample_contents, name="sample-contents")]
for _word in ("source", "sink"):
    _about = {"word": _word}
    urlpatterns += [
        path(f"add/{_word}/", registering.add, _about, name=f"{_word}-add"),
        path(f"add/{_word}/found/<uuid:intent_id>/", registering.found, _about, name=f"{_word}-found"),
        path(f"{_word}s/", ends.end_list, _about, name=f"{_word}-list"),
        path(f"{_word}s/<end_name:name>/", ends.end, _about, name=_word),
        path(f"{_word}s/<end_name:name>/test/", ends.end_test, _about, name=f"{_word}-test"),
        path(f"{_word}s/<end_name:name>/edit/", ends.end_edit, _about, name=f"{_word}-edit"),
        path(f"{_word}s/<end_name:name>/retire/", ends.end_retire, _about, name=f"{_word}-retire"),
    ]
