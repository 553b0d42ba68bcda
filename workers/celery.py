"""The Celery application: `celery -A workers.celery worker`. Its settings are dashboard.settings' Celery section."""

from __future__ import annotations

import os

from celery import Celery

from workers.schedule import SCHEDULE

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

app = Celery("fencepost", include=["workers.tasks"])
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.beat_schedule = SCHEDULE
