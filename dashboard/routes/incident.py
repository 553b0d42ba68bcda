"""An incident: audits and their findings, plans, recoveries, certificates, and the work that is done for them."""

from django.urls import path

import recovery_api.converters  # noqa: F401  registers `end_name`
from dashboard.views import audits, certificates, events, findings, incidents, omissions, plans, recoveries, work

urlpatterns = [
    path("audits/<uuid:audit_id>/", audits.audit_show, name="audit"),
    path("audits/<uuid:audit_id>/findings/", findings.finding_list, name="findings"),
    path("event/", events.event_show, name="finding"),
    path("event/read/", events.event_read, name="event-read"),
    path("event/look/", events.event_look, name="event-look"),
    path("event/leave/", events.finding_leave, name="finding-leave"),
    path("contents/<uuid:intent_id>/", events.event_content, name="event-content"),
    path("pipelines/<end_name:name>/omissions/", omissions.omissions, name="omissions"),
    path("pipelines/<end_name:name>/omissions/acknowledge/", omissions.acknowledge, name="omission-acknowledge"),
    path("pipelines/<end_name:name>/omissions/withdraw/", omissions.withdraw, name="omission-withdraw"),
    path("pipelines/<end_name:name>/omissions/preview/", omissions.preview_make, name="omission-preview-make"),
    path("pipelines/<end_name:name>/omissions/import/", omissions.export_import, name="omission-import"),
    path("pipelines/<end_name:name>/omissions/<uuid:preview_id>/", omissions.preview, name="omission-preview"),
    path("pipelines/<end_name:name>/omissions/<uuid:preview_id>/confirm/", omissions.confirm, name="omission-confirm"),
    path("plans/<uuid:plan_id>/", plans.plan_show, name="plan"),
    path("plans/<uuid:plan_id>/approve/", plans.plan_approve, name="plan-approve"),
    path("plans/<uuid:plan_id>/apply/", plans.plan_apply, name="plan-apply"),
    path("plans/<uuid:plan_id>/events.csv", plans.plan_events, name="plan-events"),
    path("recoveries/<uuid:recovery_id>/", recoveries.recovery_show, name="recovery"),
    path("recoveries/<uuid:recovery_id>/want/", recoveries.recovery_want, name="recovery-want"),
    path("recoveries/<uuid:recovery_id>/settle/", recoveries.recovery_settle, name="recovery-settle"),
    path("recoveries/<uuid:recovery_id>/certificate/", certificates.certificate_show, name="recovery-certificate"),
    path(
        "recoveries/<uuid:recovery_id>/certificate.json",
        certificates.certificate_json,
        name="recovery-certificate-json",
    ),
    path("incidents/", incidents.incident_all, name="incident-list"),
    path("incidents/<uuid:incident_id>/", incidents.incident, name="incident"),
    path("incidents/<uuid:incident_id>/note/", incidents.note, name="incident-note"),
    path("incidents/<uuid:incident_id>/post-mortem.<slug:form>", incidents.post_mortem, name="incident-post-mortem"),
    path("work/", work.work_list, name="work-list"),
    path("work/<uuid:intent_id>/", work.work_show, name="work"),
    path("work/<uuid:intent_id>/cancel/", work.work_cancel, name="work-cancel"),
]
