"""What the pager reached, and when: so that a page may say since when something was not seen."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models.functions import Now

from recovery_api.domain.alerts.causes import Cause
from recovery_api.domain.alerts.ends import Reached
from recovery_api.models import Upkeep
from recovery_api.selectors.health import reached_name


def parts_reached(reached: Mapping[Cause, Reached]) -> None:
    """Writes down what was there, as of now. What was not there keeps when it last was."""
    for cause, one in reached.items():
        if one.is_there:
            Upkeep.objects.update_or_create(name=reached_name(cause), defaults={"done_at": Now()})
