"""The Celery application: `celery -A workers.celery worker`. Its settings are dashboard.settings' Celery section.

A worker sweeps by itself (workers.presence): no beat is needed beside it.
"""

from __future__ import annotations

import os

from celery import Celery
from celery.signals import setup_logging, worker_shutting_down

from workers.presence import Presence
from workers.stopping import stop_ask

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

app = Celery("fencepost", include=["workers.tasks"])
app.config_from_object("django.conf:settings", namespace="CELERY")
app.steps["worker"].add(Presence)
worker_shutting_down.connect(stop_ask)


@setup_logging.connect  # connected, it keeps Celery from setting up its own
def logging_set_up(**_: object) -> None:
    """Logs are the settings' own, LOG_LEVEL included: Celery's `--loglevel` would say otherwise."""
    import django

    django.setup()
