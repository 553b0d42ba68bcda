"""`manage.py sink_install`: puts the sink kit into a sink's database, or shows what it would run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.domain.errors import BadInput
from recovery_api.domain.kinds import kind_get, options_parse
from recovery_api.domain.kinds.postgresql_kit import KIND, kit_options
from recovery_api.management.base import FencepostCommand, Shown
from recovery_api.management.config import options_from_flags

UNNAMED_DATABASE = "DATABASE"


class Command(FencepostCommand):
    help = (
        "Install the sink kit (fence, generations, claims, acceptance record) in a schema of a PostgreSQL sink. A kit that "
        "is there already is left as it is; one of another version is named and not touched. --print changes nothing."
    )
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("name", nargs="?", help="a registered sink of kind postgresql_kit")
        parser.add_argument("--connection", "--dsn", metavar="REF", help="env:NAME or file:/path, of who may install")
        parser.add_argument("--schema", help="the kit's schema (fencepost)")
        parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="an option of the kind")
        parser.add_argument("--print", action="store_true", dest="is_print", help="show the SQL and change nothing")
        parser.add_argument(
            "--database", help="with --print and no connection: the database's name, which the roles' names begin with"
        )

    def answer(self, now: datetime, **options: Any) -> Shown:
        given = self._given(options)
        has_connection = "connection" in given
        if not has_connection and not options["is_print"]:
            raise BadInput("--connection", "is missing", "Name a registered sink, or give env:NAME or file:/path.")
        parsed = options_parse(KIND, {"connection": "env:NOT_USED", **given})
        if options["is_print"]:
            return self._printed(parsed, has_connection, options["database"])
        return _installed(parsed)

    def _given(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The registered sink's options, with the flags before them."""
        given: dict[str, Any] = {}
        if options["name"]:
            from recovery_api.selectors.ends import sink_get

            sink = sink_get(options["name"])
            if kind_get(sink.kind) is not KIND:
                raise BadInput(
                    "name", f"sink {sink.name!r} is of kind {sink.kind}", "Only a postgresql_kit is installed."
                )
            given |= sink.options
        given |= options_from_flags(options["option"])
        flags = {"connection": options["connection"], "schema": options["schema"]}
        return given | {name: value for name, value in flags.items() if value is not None}

    def _printed(self, parsed: Mapping[str, Any], has_connection: bool, database: str | None) -> Shown:
        from workers.connectors.postgresql.connection import Address, connection_open
        from workers.connectors.sinks.kit import kit_sql

        if database is None and has_connection:
            with connection_open(Address.of(parsed)) as connection:
                database = connection.info.dbname
        script = f"BEGIN;\n{kit_sql(kit_options(parsed), database or UNNAMED_DATABASE)}\nCOMMIT;"
        return Shown({"sql": script}, [script])


def _installed(parsed: Mapping[str, Any]) -> Shown:
    from workers.connectors.postgresql.connection import Address, connection_open
    from workers.connectors.sinks.kit.inspection import kit_may_read, paths_read
    from workers.connectors.sinks.kit.install import kit_install

    with connection_open(Address.of(parsed), "fencepost sink_install") as connection:
        report = kit_install(connection, kit_options(parsed))
        paths = paths_read(connection, report["schema"]) if kit_may_read(connection, report["schema"]) else []
    roles = report["roles"]
    what = f"the kit of version {report['kit_version']} in schema {report['schema']!r}"
    lines = [f"Installed {what}." if report["installed"] else f"Nothing changed: there is {what} already."]
    lines += [f"  GRANT {role} TO <login>;  -- {trade}" for trade, role in roles.items()]
    if paths:
        lines += [
            "Paths into the record that stay open, and that no fence checks:",
            *(f"  {says}" for _, _, says in paths),
        ]
    rows = [{"path": path, "role": role, "says": says} for path, role, says in paths]
    return Shown({**report, "undisciplined_paths": rows}, lines)
