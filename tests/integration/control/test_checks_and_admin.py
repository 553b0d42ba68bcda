"""System checks speak in sentences; the admin only shows."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.urls import reverse

from recovery_api.checks import settings_check


def said(settings_changed, settings):
    for name, value in settings_changed.items():
        setattr(settings, name, value)
    return [f"{message.msg} {message.hint}" for message in settings_check()]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"REDIS_URL": "localhost:6379"}, "REDIS_URL is not an address of Redis"),
        ({"SPARK_REMOTE": "spark://host:7077"}, "SPARK_REMOTE is not an address of Spark Connect"),
        ({"SPARK_REMOTE": "sc://host:15002;user_id=x"}, "lacks the slash"),
        ({"FENCEPOST_ALERT_PRIVATE_ADDRESSES": ["10.0.0.0/33"]}, "'10.0.0.0/33' is no network"),
        ({"FENCEPOST_HEARTBEAT_URL": "monitor.example"}, "FENCEPOST_HEARTBEAT_URL is no https address"),
        ({"FENCEPOST_EVIDENCE_DIR": "/proc/version/evidence"}, "/proc/version is not a directory this user may write"),
        ({"DATABASES": {"default": {"ENGINE": "django.db.backends.sqlite3"}}}, "needs PostgreSQL"),
    ],
)
@pytest.mark.filterwarnings("ignore:Overriding setting DATABASES")
def test_wrong_setting_is_said_in_a_sentence(settings, changed, words):
    problems = said(changed, settings)
    assert len(problems) == 1 and words in problems[0]


def test_settings_that_serve_or_are_left_out_have_no_problem(settings, tmp_path):
    good = {"REDIS_URL": "redis://host:6379/0", "SPARK_REMOTE": "sc://host:15002/;user_id=x"}
    assert said({**good, "FENCEPOST_EVIDENCE_DIR": tmp_path / "not" / "yet"}, settings) == []
    assert said({"REDIS_URL": "", "SPARK_REMOTE": ""}, settings) == []


def test_admin_shows_every_table_and_changes_none(approved_plan, admin_client, rf, settings):
    settings.SECURE_SSL_REDIRECT = False
    request = rf.get("/")
    request.user = User(is_superuser=True, is_staff=True, is_active=True)
    for model in apps.get_app_config("recovery_api").get_models():
        shown = admin.site._registry[model]
        assert not shown.has_add_permission(request) and not shown.has_delete_permission(request)
        assert not shown.has_change_permission(request)
        assert admin_client.get(reverse(f"admin:recovery_api_{model._meta.model_name}_changelist")).status_code == 200
