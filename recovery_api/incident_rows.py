"""An incident as a JSON object: one spelling for command, REST and page."""

from __future__ import annotations

from recovery_api.domain.actors import by
from recovery_api.domain.incidents import Figures, PipelineFigures
from recovery_api.models import Incident
from recovery_api.rows import Row, time_as_text


def incident_as_row(incident: Incident) -> Row:
    return {
        "incident": str(incident.id),
        "title": incident.title,
        "state": incident.state,
        "severity": incident.severity,
        "commander": incident.commander,
        "cause": incident.cause,
        "pipelines": sorted(one.name for one in incident.pipelines.all()),
        "alerts": incident.alerts,
        "noticed_at": time_as_text(incident.noticed_at),
        "opened_at": time_as_text(incident.opened_at),
        "opened_by": incident.opened_by,
        "closed_at": time_as_text(incident.closed_at),
    }


def figures_as_row(figures: Figures) -> Row:
    """What no row shows is null."""
    first = figures.first_action
    return {
        "first_owed_at": time_as_text(figures.first_owed_at),
        "noticed_at": time_as_text(figures.noticed_at),
        "first_action_at": time_as_text(first.at) if first else None,
        "first_action_by": first.actor if first else None,
        "well_at": time_as_text(figures.well_at),
        "events_touched": figures.events_touched,
        "delivered": figures.delivered,
        "already_present": figures.already_present,
        "altered": figures.altered,
        "approvers": list(figures.approvers),
        "pipelines": [_of_pipeline(one) for one in figures.pipelines],
    }


def incident_lines(row: Row) -> list[str]:
    """For a person."""
    who = row["commander"] or "nobody is named"
    return [
        f"{row['title']}: {row['severity']}, {row['state']}; commander: {who}",
        f"  {row['incident']}, opened {row['opened_at'][:19]}Z {by(row['opened_by'])}",
        f"  of {', '.join(row['pipelines']) or 'no pipeline'}",
    ]


def _of_pipeline(one: PipelineFigures) -> Row:
    return {
        "pipeline": one.pipeline,
        "last_clean_at": time_as_text(one.last_clean_at),
        "first_owed_at": time_as_text(one.first_owed_at),
        "well_at": time_as_text(one.well_at),
        "well_words": one.well_words,
        "owed_at_most": one.owed_at_most,
        "hazards_at_most": one.hazards_at_most,
    }
