"""System checks: what is set wrong, in a sentence, before anybody waits for it. `manage.py check`."""

from __future__ import annotations

import os
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from recovery_api.domain.alerts.addresses import networks_parse, url_check
from recovery_api.domain.errors import BadInput
from recovery_api.domain.evidence_places import place_parse
from recovery_api.domain.retention import SETTINGS, ages_parse
from recovery_api.logs import LOG_FORMATS, LOG_LEVELS
from recovery_api.selectors.evidence_places import store_url


@register("fencepost")
def settings_check(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Every problem found. Nothing is connected to or created; what is not set is said where it is first needed."""
    return [*_database(), *_evidence(), *_retention(), *_broker(), *_engine(), *_proxies(), *_logs(), *_alerts()]


def _database() -> list[CheckMessage]:
    engine = settings.DATABASES.get("default", {}).get("ENGINE", "")
    if not engine or engine.endswith(".dummy") or "postgresql" in engine:
        return []
    return [
        Error(
            f"The control database is {engine.rpartition('.')[2]}; Fencepost needs PostgreSQL.",
            hint="Set DATABASE_URL to postgresql://….",
            id="fencepost.E001",
        )
    ]


def _evidence() -> list[CheckMessage]:
    try:
        place_parse(store_url())
    except BadInput as error:
        return [
            Error(
                f"{error.data['field']} {error.data['problem']}.", hint=str(error.data["remedy"]), id="fencepost.E009"
            )
        ]
    directory = getattr(settings, "FENCEPOST_EVIDENCE_DIR", None)
    if directory is None:
        return [Error("FENCEPOST_EVIDENCE_DIR is not set.", hint="Name a directory.", id="fencepost.E002")]
    existing = next(path for path in (Path(directory).absolute(), *Path(directory).absolute().parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        return [
            Error(
                f"Evidence cannot be written to {directory}: {existing} is not a directory this user may write.",
                hint="Set FENCEPOST_EVIDENCE_DIR to a directory that workers and executors share.",
                id="fencepost.E003",
            )
        ]
    return []


def _retention() -> list[CheckMessage]:
    try:
        ages_parse({name: getattr(settings, name) for name in SETTINGS})
    except BadInput as error:
        return [
            Error(
                f"{error.data['field']} {error.data['problem']}.", hint=str(error.data["remedy"]), id="fencepost.E008"
            )
        ]
    return []


def _broker() -> list[CheckMessage]:
    url = settings.REDIS_URL
    if not url:
        return []
    if urlsplit(url).scheme not in ("redis", "rediss", "unix") or not (urlsplit(url).hostname or urlsplit(url).path):
        return [Error("REDIS_URL is not an address of Redis.", hint="Like redis://host:6379/0.", id="fencepost.E004")]
    return []


def _proxies() -> list[CheckMessage]:
    hint = "Like 10.0.0.5,10.1.0.0/16: each proxy's address or network, outermost first."
    found = _networks("FENCEPOST_TRUSTED_PROXIES", hint, "fencepost.E007")
    hint = "Like 10.0.0.5,10.1.0.0/16: each address or network that scrapes."
    return [*found, *_networks("FENCEPOST_METRICS_FROM", hint, "fencepost.E011")]


def _networks(name: str, hint: str, number: str) -> list[CheckMessage]:
    try:
        for one in getattr(settings, name, []):
            ip_network(one, strict=False)
    except ValueError as error:
        return [Error(f"{name} cannot be read: {error}.", hint=hint, id=number)]
    return []


def _logs() -> list[CheckMessage]:
    found = []
    if (level := getattr(settings, "LOG_LEVEL_GIVEN", "WARNING")).upper() not in LOG_LEVELS:
        says = f"LOG_LEVEL is {level!r}, which is no level; WARNING counts instead."
        found.append(Error(says, hint=f"One of: {', '.join(LOG_LEVELS)}.", id="fencepost.E009"))
    if (form := getattr(settings, "LOG_FORMAT_GIVEN", "line")) not in LOG_FORMATS:
        says = f"LOG_FORMAT is {form!r}, which is no format; `line` counts instead."
        found.append(Error(says, hint=f"One of: {', '.join(LOG_FORMATS)}.", id="fencepost.E010"))
    return found


def _alerts() -> list[CheckMessage]:
    """Of the pager's settings what can be seen without resolving a reference."""
    found: list[CheckMessage] = []
    base, heartbeat = settings.FENCEPOST_URL, settings.FENCEPOST_HEARTBEAT_URL
    try:
        networks_parse(settings.FENCEPOST_ALERT_PRIVATE_ADDRESSES)
        if base:
            url_check(base, "FENCEPOST_URL")
        if heartbeat and not heartbeat.startswith(("env:", "file:")):
            url_check(heartbeat, "FENCEPOST_HEARTBEAT_URL")
    except BadInput as error:
        says = f"{error.data['field']} {error.data['problem']}."
        found.append(Error(says, hint=str(error.data["remedy"]), id="fencepost.E012"))
    return found


def _engine() -> list[CheckMessage]:
    url = settings.SPARK_REMOTE
    if not url:
        return []
    parts = urlsplit(url)
    if parts.scheme != "sc" or not parts.hostname:
        return [
            Error(
                "SPARK_REMOTE is not an address of Spark Connect.",
                hint="Like sc://host:15002/;user_id=fencepost.",
                id="fencepost.E005",
            )
        ]
    if ";" in parts.netloc:
        return [
            Error(
                "SPARK_REMOTE lacks the slash before its parameters.",
                hint="Write sc://host:15002/;user_id=….",
                id="fencepost.E006",
            )
        ]
    return []
