"""A worker process that joins the files of every archive, as on the day after. `python -m tests.faults.join_archive`."""

from __future__ import annotations

import os
from datetime import timedelta

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    django.setup()
    from django.utils import timezone

    from workers.recovery.archiving import archive_join

    archive_join(timezone.now() + timedelta(days=1))
