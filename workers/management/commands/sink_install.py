"""`manage.py sink_install`: the sink kit into the sink's own database, once, whole or not at all; upgraded; or shown."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from recovery_api.domain.errors import BadInput
from recovery_api.domain.kinds import Kind, kind_get, kind_installed, kinds_offered, options_parse
from recovery_api.management.base import FencepostCommand, Shown
from recovery_api.management.config import config_read, options_from_flags
from workers.connectors.registry import installer_of

TRADES = sorted({trade for kind in kinds_offered("sink") if kind.installer for trade in kind.installer.trades})


class Command(FencepostCommand):
    help = (
        "Install the sink kit (fence, generations, claims, acceptance record, staging) in a schema of its own. Takes a "
        "registered sink, or the options that `sinks add` takes. A kit that is there already is left as it is; one of "
        "another version is named and not touched, unless --upgrade is given."
    )
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("name", nargs="?", help="a registered sink whose kind has a kit")
        parser.add_argument("--file", help="a .json or .toml file with name, kind and options, as for `sinks add`")
        parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="an option of the kind")
        parser.add_argument("--schema", help="the kit's schema (fencepost)")
        parser.add_argument(
            "--as",
            "--connection",
            dest="installer",
            metavar="REFERENCE",
            help="connect as this instead: env:FENCEPOST_END_NAME or file:/path, of who may install",
        )
        parser.add_argument(
            "--grant",
            action="append",
            default=[],
            metavar="TRADE=LOGIN",
            help=f"make a login one of the kit's groups: {', '.join(TRADES)}",
        )
        parser.add_argument(
            "--upgrade",
            action="store_true",
            help="bring a kit of an earlier version to this one in place: one transaction, record and counters kept",
        )
        parser.add_argument("--print", action="store_true", help="show the SQL, connect to nothing, change nothing")
        parser.add_argument(
            "--database", help="with --print and no connection: the database's name, which the roles' names begin with"
        )

    def answer(self, now: datetime, **options: Any) -> Shown:
        kind, given = _given(options)
        installer = installer_of(kind)
        if "connection" not in given and not options["print"]:
            raise BadInput(
                "--connection", "is missing", "Name a registered sink, or give env:FENCEPOST_END_NAME or file:/path."
            )
        parsed = options_parse(kind, {"connection": "env:NOT_USED", **given})
        grants = [_grant(pair) for pair in options["grant"]]
        if options["print"] and options["upgrade"]:
            raise BadInput("--print", "shows no upgrade: its steps depend on what is found", "Give one of the two.")
        if options["print"]:
            script = installer.kit_script(
                parsed, grants, options["database"] or installer.database_of(given.get("connection"))
            )
            return Shown({"sql": script}, [script], is_verbatim=True)
        return _shown(installer.kit_put(parsed, grants, options["upgrade"]))


def _given(options: Mapping[str, Any]) -> tuple[Kind, dict[str, Any]]:
    """The kind and its options: of the registered sink or the file, with the flags before them."""
    if options["name"] and options["file"]:
        raise BadInput("--file", "stands beside a registered sink's name", "Give one or the other.")
    given: dict[str, Any] = {}
    kind: Kind | None = None
    if options["name"]:
        from recovery_api.selectors.ends import sink_get

        sink = sink_get(options["name"])
        kind = kind_get(sink.kind)
        if kind.installer is None:
            problem = f"sink {sink.name!r} is of kind {sink.kind}"
            raise BadInput("name", problem, f"Only a {kind_installed().name} is installed.")
        given |= sink.options
    elif options["file"]:
        kind, in_file = _read_file(options["file"])
        given |= in_file
    given |= options_from_flags(options["option"])
    flags = {"connection": options["installer"], "schema": options["schema"]}
    return kind or kind_installed(), given | {name: value for name, value in flags.items() if value is not None}


def _read_file(path: str) -> tuple[Kind | None, dict[str, Any]]:
    found = config_read(path, ("name", "kind", "options"))
    kind = kind_get(found["kind"]) if "kind" in found else None
    if kind is not None and kind.installer is None:
        raise BadInput("kind", f"{found['kind']!r} needs no kit", f"Only {kind_installed().name} is installed.")
    given = found.get("options")
    if not isinstance(given, dict):
        raise BadInput("options", "is not an object", "Write the options as members of one object.")
    return kind, given


def _grant(pair: str) -> tuple[str, str]:
    trade, _, login = pair.partition("=")
    if trade not in TRADES or not login:
        raise BadInput("--grant", f"{pair!r} is not TRADE=LOGIN", f"Trades: {', '.join(TRADES)}.")
    return trade, login


def _shown(report: Mapping[str, Any]) -> Shown:
    what = f"sink kit {report['kit_version']} in schema {report['schema']!r}"
    lines = [f"Installed {what}." if report["installed"] else f"Nothing changed: there is {what} already, the same."]
    if report["upgraded"]:
        lines = [f"Upgraded version {report['from_version']} to {what}. Record, counters and claims were kept."]
    lines += [f"  {says}" for says in [*report["not_carried"], report["not_indexed"]] if says]
    lines += [f"  {trade}s: grant {report['roles'][trade]} to their login" for trade in TRADES]
    lines += [f"  granted: {login} is a {trade}" for login, trade in report["granted"].items()]
    if told := report.get("lanes_told"):
        lines += [f"  told the source's lanes: {', '.join(told)}"]
    if paths := report["undisciplined_paths"]:
        lines += ["Paths into the record that stay open, and that no fence checks:"]
        lines += [f"  {path['says']}" for path in paths]
    return Shown(dict(report), lines)
