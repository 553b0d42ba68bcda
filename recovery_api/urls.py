"""The addresses of the REST API, under `/api/v1/`. Their names are the rows of `recovery_api.domain.access.API`."""

from __future__ import annotations

from django.urls import path, re_path, register_converter

from recovery_api.views import (
    about,
    audits,
    ends,
    event_reads,
    events,
    intents,
    omissions,
    pipelines,
    plans,
    recoveries,
    sink_jobs,
    tokens,
)


class NameConverter:
    """A name as one segment, already decoded. No registered name holds what it refuses."""

    regex = r"[^/\x00-\x1f]{1,200}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(NameConverter, "end_name")

urlpatterns = [
    path("", about.Index.as_view(), name="api-index"),
    path("me", about.Me.as_view(), name="api-me"),
    path("problems", about.Problems.as_view(), name="api-problems"),
    path("schema", about.Schema.as_view(), name="api-schema"),
    path("docs", about.TryIt.as_view(), name="api-docs"),
    path("kinds", ends.Kinds.as_view(), name="api-kinds"),
    path("connection-tests", ends.ConnectionTests.as_view(), name="api-connection-tests"),
    path("sources", ends.Sources.as_view(), name="api-sources"),
    path("sources/<end_name:name>", ends.SourceOne.as_view(), name="api-source"),
    path("sources/<end_name:name>/test", ends.SourceTest.as_view(), name="api-source-test"),
    path("sources/<end_name:name>/retire", ends.SourceRetire.as_view(), name="api-source-retire"),
    path("sinks", ends.Sinks.as_view(), name="api-sinks"),
    path("sinks/<end_name:name>", ends.SinkOne.as_view(), name="api-sink"),
    path("sinks/<end_name:name>/test", ends.SinkTest.as_view(), name="api-sink-test"),
    path("sinks/<end_name:name>/settle", sink_jobs.SinkSettle.as_view(), name="api-sink-settle"),
    path("sinks/<end_name:name>/read", sink_jobs.SinkRead.as_view(), name="api-sink-read"),
    path("sinks/<end_name:name>/install", sink_jobs.SinkInstall.as_view(), name="api-sink-install"),
    path("sinks/<end_name:name>/drills", sink_jobs.SinkDrills.as_view(), name="api-sink-drills"),
    path("sinks/<end_name:name>/drill-schedule", sink_jobs.SinkDrillSchedule.as_view(), name="api-sink-drill-schedule"),
    path("sinks/<end_name:name>/retire", ends.SinkRetire.as_view(), name="api-sink-retire"),
    path("statuses", pipelines.Fleet.as_view(), name="api-statuses"),
    path("pipelines", pipelines.Pipelines.as_view(), name="api-pipelines"),
    path("pipelines/<end_name:name>", pipelines.PipelineOne.as_view(), name="api-pipeline"),
    path("pipelines/<end_name:name>/test", pipelines.PipelineTest.as_view(), name="api-pipeline-test"),
    path("pipelines/<end_name:name>/retire", pipelines.PipelineRetire.as_view(), name="api-pipeline-retire"),
    path("pipelines/<end_name:name>/event-reads", event_reads.EventReads.as_view(), name="api-pipeline-event-reads"),
    path("pipelines/<end_name:name>/status", pipelines.PipelineStatusOne.as_view(), name="api-pipeline-status"),
    path("pipelines/<end_name:name>/frontiers", pipelines.PipelineFrontiers.as_view(), name="api-pipeline-frontiers"),
    path(
        "pipelines/<end_name:name>/generations",
        pipelines.PipelineGenerations.as_view(),
        name="api-pipeline-generations",
    ),
    path("pipelines/<end_name:name>/claims", pipelines.PipelineClaims.as_view(), name="api-pipeline-claims"),
    path("pipelines/<end_name:name>/omissions", omissions.PipelineOmissions.as_view(), name="api-pipeline-omissions"),
    path(
        "pipelines/<end_name:name>/omissions/withdraw",
        omissions.PipelineOmissionWithdraw.as_view(),
        name="api-pipeline-omission-withdraw",
    ),
    path("audits", audits.Audits.as_view(), name="api-audits"),
    path("audits/<uuid:audit_id>", audits.AuditOne.as_view(), name="api-audit"),
    path("audits/<uuid:audit_id>/findings", audits.AuditFindings.as_view(), name="api-audit-findings"),
    path("plans", plans.Plans.as_view(), name="api-plans"),
    path("plans/<uuid:plan_id>", plans.PlanOne.as_view(), name="api-plan"),
    path("plans/<uuid:plan_id>/findings", plans.PlanFindings.as_view(), name="api-plan-findings"),
    path("plans/<uuid:plan_id>/approval", plans.PlanApproval.as_view(), name="api-plan-approval"),
    path("recoveries", recoveries.Recoveries.as_view(), name="api-recoveries"),
    path("recoveries/<uuid:recovery_id>", recoveries.RecoveryOne.as_view(), name="api-recovery"),
    path("recoveries/<uuid:recovery_id>/pause", recoveries.RecoveryPause.as_view(), name="api-recovery-pause"),
    path("recoveries/<uuid:recovery_id>/resume", recoveries.RecoveryResume.as_view(), name="api-recovery-resume"),
    path("recoveries/<uuid:recovery_id>/stop", recoveries.RecoveryStop.as_view(), name="api-recovery-stop"),
    path("recoveries/<uuid:recovery_id>/settle", recoveries.RecoverySettle.as_view(), name="api-recovery-settle"),
    path(
        "recoveries/<uuid:recovery_id>/certificate",
        recoveries.RecoveryCertificate.as_view(),
        name="api-recovery-certificate",
    ),
    path("events", events.Events.as_view(), name="api-events"),
    path("intents", intents.Intents.as_view(), name="api-intents"),
    path("intents/<uuid:intent_id>", intents.IntentOne.as_view(), name="api-intent"),
    path("intents/<uuid:intent_id>/content", event_reads.IntentContent.as_view(), name="api-intent-content"),
    path("intents/<uuid:intent_id>/cancel", intents.IntentCancel.as_view(), name="api-intent-cancel"),
    path("tokens", tokens.Tokens.as_view(), name="api-tokens"),
    path("tokens/<uuid:token_id>", tokens.TokenOne.as_view(), name="api-token"),
    re_path(r"^.*\Z", about.Unknown.as_view(), name="api-unknown"),
]
