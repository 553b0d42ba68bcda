from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandParser

from recovery_api.domain.errors import BadInput, NotFound
from recovery_api.management.base import FencepostCommand, Shown, subcommand_add
from recovery_api.selectors.people import roles_of
from recovery_api.selectors.tokens import token_get, token_list
from recovery_api.services.tokens import DAYS, token_create, token_revoke, tokens_end
from recovery_api.token_rows import token_as_row


class Command(FencepostCommand):
    help = "API tokens: add one for a person (shown once), list them, revoke one."

    def add_arguments(self, parser: CommandParser) -> None:
        subparsers = parser.add_subparsers(dest="what", required=True)
        add = subcommand_add(subparsers, "add", "make a token for a person; it is shown once")
        add.add_argument("person", help="who signs in with this name")
        add.add_argument("--name", required=True, help="what the token is for")
        add.add_argument(
            "--role", action="append", default=[], metavar="ROLE", help="its limit (default: all roles of the person)"
        )
        add.add_argument("--days", type=int, default=DAYS, help=f"how long it stands (default {DAYS})")
        listed = subcommand_add(subparsers, "list", "every token, or one person's")
        listed.add_argument("person", nargs="?")
        revoke = subcommand_add(subparsers, "revoke", "end a token now, or all of a person's")
        revoke.add_argument("token", nargs="?", help="its id, as listed")
        revoke.add_argument("--all-of", metavar="PERSON", help="every token of this person: a new password ends none")

    def answer(self, now: datetime, **options: Any) -> Shown:
        if options["what"] == "add":
            return self._add(now, options)
        if options["what"] == "revoke" and options["all_of"]:
            ended = tokens_end(_person(options["all_of"]), actor=options["actor"], now=now)
            return Shown({"person": options["all_of"], "ended": ended}, [f"{ended} ended."])
        if options["what"] == "revoke":
            if not options["token"]:
                raise BadInput("token", "is missing", "Name its id, or --all-of PERSON.")
            row = token_as_row(token_revoke(token_get(options["token"]), actor=options["actor"], now=now), now)
            return Shown(row, [_line(row)])
        found = token_list(_person(options["person"]) if options["person"] else None)
        rows = [token_as_row(token, now) for token in found]
        return Shown({"tokens": rows}, [_line(row) for row in rows] or ["There is no token."])

    def _add(self, now: datetime, options: dict[str, Any]) -> Shown:
        user = _person(options["person"])
        held = roles_of(user) or frozenset()
        row, text = token_create(
            user,
            options["name"],
            options["role"] or sorted(held),
            held=held,
            actor=options["actor"],
            now=now,
            days=options["days"],
        )
        shown = token_as_row(row, now)
        return Shown({**shown, "token": text}, [text, f"Shown once. {_line(shown)}"])


def _person(name: str) -> Any:
    """Raises: NotFound."""
    user = get_user_model().objects.filter(username=name).first()
    if user is None:
        raise NotFound(f"Person {name!r}", "the control database", "Add one: manage.py createsuperuser, or in /admin/.")
    return user


def _line(row: dict[str, Any]) -> str:
    until = f"until {row['expires_at'][:10]}" if row["state"] == "standing" else row["state"]
    roles = ", ".join(row["roles"])
    used = f"last used {row['last_used_at'][:16]}" if row["last_used_at"] else "never used"
    return f"{row['token_id']}  {row['begins_with']}…  {row['person']}  {row['name']}  ({roles})  {until}  {used}"
