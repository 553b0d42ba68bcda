"""A post-mortem as Markdown, and as a page of HTML that needs nothing but itself."""

from __future__ import annotations

from datetime import datetime

from recovery_api.domain.incidents import post_mortem
from recovery_api.models import Incident
from recovery_api.runbooks import page_html, section_html
from recovery_api.selectors.incidents import incident_told


def post_mortem_markdown(incident: Incident, now: datetime) -> str:
    return post_mortem(incident_told(incident, now))


def post_mortem_html(incident: Incident, markdown: str) -> str:
    """The page of what `post_mortem_markdown` gave."""
    return page_html(f"Post-mortem: {incident.title}", section_html(markdown))
