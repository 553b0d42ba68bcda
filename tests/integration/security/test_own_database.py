"""The control database is no end: not for a test, a registration, an audit or an install, whatever the address."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connection as control
from django.utils import timezone
from psycopg import sql
from psycopg.conninfo import make_conninfo

from recovery_api.domain.errors import FencepostError, Refused
from recovery_api.domain.kinds import kind_get, options_parse
from recovery_api.services.audits import audit_request
from recovery_api.services.ends import connection_test_request, sink_create, source_create
from recovery_api.services.pipelines import pipeline_create
from recovery_api.services.sink_jobs import sink_install_request
from workers.connectors.postgresql.connection import Address, connection_open
from workers.connectors.sinks.kit.putting import kit_put
from workers.runners import intent_run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def own(postgres_admin_dsn: str, tmp_path: Path) -> str:
    """A reference to the control database of this test."""
    (tmp_path / "own").write_text(make_conninfo(postgres_admin_dsn, dbname=control.settings_dict["NAME"]))
    return f"file:{tmp_path / 'own'}"


@pytest.fixture
def weak(postgres_admin_dsn: str, tmp_path: Path) -> Iterator[str]:
    """The same as another login, which may do nothing but connect, and by another address."""
    name = f"weak_{secrets.token_hex(4)}"
    with psycopg.connect(postgres_admin_dsn, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'hush'").format(sql.Identifier(name)))
        login = {"dbname": control.settings_dict["NAME"], "user": name, "password": "hush", "host": "localhost"}
        (tmp_path / "weak").write_text(make_conninfo(postgres_admin_dsn, **login))
        yield f"file:{tmp_path / 'weak'}"
        admin.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def people_of(reference: str) -> dict[str, Any]:
    return {"connection": reference, "table": "auth_user", "coordinate": ["id"], "key": "password"}


def run(intent: Any) -> Any:
    intent_run(str(intent.id), "test")
    intent.refresh_from_db()
    return intent


def test_s1_a_connection_test_of_the_control_database_shows_nothing(own: str, weak: str) -> None:
    User.objects.create_user("grace", password="an approver's password")
    for reference in (own, weak):
        for kind, options in (
            ("postgresql_outbox", people_of(reference)),
            ("postgresql_kit", {"connection": reference}),
        ):
            end = "sink" if kind == "postgresql_kit" else "source"
            tested = run(
                connection_test_request(
                    end=end, kind=kind, options=options, actor="eve", now=timezone.now(), wake=False
                )
            )
            assert not tested.result["is_usable"] and "Fencepost's own tables" in str(tested.result)
            assert "pbkdf2" not in str(tested.result) and not tested.result.get("sample")


def test_s1_an_end_registered_untested_is_refused_when_it_is_used(
    own: str, database_factory: Callable[[str], str]
) -> None:
    now = timezone.now()
    source = source_create("people", "postgresql_outbox", people_of(own), actor="eve", now=now)
    sink = sink_create("kit", "postgresql_kit", {"connection": own}, actor="eve", now=now)
    pipeline = pipeline_create("people-kit", source, sink, actor="eve", now=now, options={})
    asked = run(audit_request(pipeline, actor="eve", now=now, wake=False))
    assert asked.state == "failed" and "Fencepost's own tables" in str(asked.error)


def test_s2_the_kit_is_not_installed_in_the_control_database(own: str) -> None:
    asked = sink_install_request(
        options={"connection": own}, is_shown_only=False, actor="eve", now=timezone.now(), grants={}, wake=False
    )
    assert "Fencepost's own tables" in str(run(asked).error)
    with pytest.raises(Refused, match="own tables"):
        kit_put(kind_options("postgresql_kit", {"connection": own}), [])
    with control.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_namespace WHERE nspname = 'fencepost'")
        assert cursor.fetchone() == (0,)


def test_s1_a_copy_of_a_control_database_is_refused_too(
    own: str, postgres_admin_dsn: str, database_factory: Callable[[str], str], tmp_path: Path
) -> None:
    dsn = database_factory("copy")
    with psycopg.connect(dsn, autocommit=True) as copy:
        copy.execute("CREATE SCHEMA moved")
        for name in ("recovery_api_event", "recovery_api_intent", "recovery_api_pipeline"):
            with connection_to(dsn, tmp_path):  # an end may have one that is called so
                copy.execute(sql.SQL("CREATE TABLE moved.{} ()").format(sql.Identifier(name)))
    with pytest.raises(FencepostError, match="own tables"), connection_to(dsn, tmp_path):
        pass


def connection_to(dsn: str, folder: Path) -> Any:
    (folder / "end").write_text(dsn)
    return connection_open(Address(f"file:{folder / 'end'}"))


def kind_options(kind: str, given: dict[str, Any]) -> dict[str, Any]:
    return options_parse(kind_get(kind), given)
