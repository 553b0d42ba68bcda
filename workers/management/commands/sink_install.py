"""`manage.py sink_install`: the sink kit into the sink's own database, once, whole or not at all."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import psycopg
from django.core.management.base import CommandParser
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from recovery_api.domain.errors import BadInput
from recovery_api.domain.kinds import kind_get, options_parse
from recovery_api.domain.kinds.postgresql_kit import KitOptions, kit_options
from recovery_api.management.base import FencepostCommand, Shown
from recovery_api.management.config import config_read, options_from_flags
from workers.connectors.credentials import credential_resolve
from workers.connectors.postgresql.connection import Address, connection_open
from workers.connectors.sinks.kit import kit_sql
from workers.connectors.sinks.kit.install import kit_install

KIND = "postgresql_kit"
TRADES = ("relay", "recoverer", "auditor")


class Command(FencepostCommand):
    help = (
        "Install the sink kit: fence, generation counter, claims, acceptance record and staging, in a schema of their "
        "own. Takes the options that `sinks add` takes. Installed already and the same: nothing is changed."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--file", help="a .json or .toml file with name, kind and options, as for `sinks add`")
        parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="an option of the kind")
        parser.add_argument(
            "--as", dest="installer", metavar="REFERENCE", help="connect as this instead: env:NAME or file:/path"
        )
        parser.add_argument(
            "--grant",
            action="append",
            default=[],
            metavar="TRADE=LOGIN",
            help=f"make a login one of the kit's groups: {', '.join(TRADES)}",
        )
        parser.add_argument("--print", action="store_true", help="show the SQL, connect to nothing, change nothing")

    def answer(self, now: datetime, **options: Any) -> Shown:
        parsed = options_parse(kind_get(KIND), _given(options))
        kit, grants = kit_options(parsed), [_grant(pair) for pair in options["grant"]]
        if options["installer"]:
            parsed["connection"] = options["installer"]
        if options["print"]:
            script = _script(kit, parsed["connection"])
            return Shown({"sql": script}, [script])
        with connection_open(Address.of(parsed)) as connection, connection.transaction():
            report = kit_install(connection, kit)
            for trade, login in grants:
                group = sql.Identifier(report["roles"][trade])
                connection.execute(sql.SQL("GRANT {} TO {}").format(group, sql.Identifier(login)))
        done = "Installed" if report["installed"] else "It was there already, the same:"
        lines = [f"{done} sink kit {report['kit_version']} in schema {report['schema']!r}."]
        lines += [f"  {trade}s: grant {report['roles'][trade]} to their login" for trade in TRADES]
        lines += [f"  granted: {login} is a {trade}" for trade, login in grants]
        return Shown({**report, "granted": {login: trade for trade, login in grants}}, lines)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """The kind's options, from flags or from a file, never half from each."""
    if not options["file"]:
        return options_from_flags(options["option"])
    if options["option"]:
        raise BadInput("--file", "stands beside --option", "Give one or the other.")
    found = config_read(options["file"], ("name", "kind", "options"))
    if found.get("kind", KIND) != KIND:
        raise BadInput("kind", f"{found['kind']!r} needs no kit", f"Only {KIND} is installed.")
    given = found.get("options")
    if not isinstance(given, dict):
        raise BadInput("options", "is not an object", "Write the options as members of one object.")
    return given


def _grant(pair: str) -> tuple[str, str]:
    trade, _, login = pair.partition("=")
    if trade not in TRADES or not login:
        raise BadInput("--grant", f"{pair!r} is not TRADE=LOGIN", f"Trades: {', '.join(TRADES)}.")
    return trade, login


def _script(kit: KitOptions, reference: str) -> str:
    """The SQL, for the database that the connection string names: its roles are named after it."""
    try:
        database = conninfo_to_dict(credential_resolve(reference)).get("dbname")
    except psycopg.ProgrammingError as error:
        raise BadInput(reference, "does not hold a connection string", "Write a libpq URL or key=value.") from error
    if not database:
        raise BadInput(reference, "names no database", "Name it in the connection string.")
    return f"BEGIN;\n{kit_sql(kit, str(database))}\nCOMMIT;"
