"""A worker process for the crash tests: takes one intent and runs it. `python -m tests.faults.run_intent INTENT NAME`."""

from __future__ import annotations

import os
import sys

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    django.setup()
    from workers.runners import intent_run

    sys.exit(0 if intent_run(sys.argv[1], sys.argv[2]) else 4)
