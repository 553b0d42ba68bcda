"""Signing in, one's tokens, the fleet, a pipeline, the timeline."""

from django.urls import path

import recovery_api.converters  # noqa: F401  registers `end_name`
from dashboard.views import (
    freezes,
    health,
    images,
    metrics,
    overview,
    password,
    pipeline,
    runbooks,
    saved_filters,
    sign_in,
    timeline,
    tokens,
)

urlpatterns = [
    path("", overview.overview, name="overview"),
    path("filters/save/", saved_filters.filter_save, name="filter-save"),
    path("filters/<uuid:filter_id>/delete/", saved_filters.filter_delete, name="filter-delete"),
    path("sign-in/", sign_in.sign_in, name="sign-in"),
    path("sign-out/", sign_in.sign_out, name="sign-out"),
    path("tokens/", tokens.token_list, name="token-list"),
    path("tokens/end-all/", tokens.token_end_all, name="token-end-all"),
    path("password/", password.password, name="password"),
    path("tokens/everybody/", tokens.token_everybody, name="token-everybody"),
    path("tokens/<uuid:token_id>/revoke/", tokens.token_revoke, name="token-revoke"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("runbooks/", runbooks.runbook_list, name="runbook-list"),
    path("runbooks/<slug:book>/", runbooks.runbook, name="runbook"),
    path("pipelines/<end_name:name>/runbooks/<slug:book>/", runbooks.runbook, name="pipeline-runbook"),
    path("metrics", metrics.metrics, name="metrics"),
    path("freeze/", freezes.freeze, name="freeze"),
    path("freeze/lift/", freezes.unfreeze, name="unfreeze"),
    path("pipelines/<end_name:name>/freeze/", freezes.freeze, name="pipeline-freeze"),
    path("pipelines/<end_name:name>/freeze/lift/", freezes.unfreeze, name="pipeline-unfreeze"),
    path("timeline/", timeline.timeline, name="timeline"),
    path("pipelines/<end_name:name>/", pipeline.pipeline, name="pipeline"),
    path("pipelines/<end_name:name>/work/", pipeline.work_of, name="pipeline-work"),
    path("pipelines/<end_name:name>/timeline/", timeline.pipeline_timeline, name="pipeline-timeline"),
    path("pipelines/<end_name:name>/audit/", pipeline.audit, name="pipeline-audit"),
    path("pipelines/<end_name:name>/image/", images.image, name="pipeline-image"),
    path("images/<uuid:image_id>/value/", images.image_value, name="image-value"),
    path("pipelines/<end_name:name>/plan/", pipeline.plan, name="pipeline-plan"),
]
