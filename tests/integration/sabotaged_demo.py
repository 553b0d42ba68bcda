"""The demo at a sink whose fence was taken out: run as a process, it has to notice."""

from __future__ import annotations

import os
import sys

import psycopg
from psycopg import sql

FENCE = "IF generation < fence_now THEN"


def fence_remove(dsn: str, schema: str) -> None:
    """Takes the fence's check out of the kit's admission. Everything else stays."""
    with psycopg.connect(dsn, autocommit=True) as mail:
        name = sql.Identifier(schema, "admit").as_string(mail)
        row = mail.execute("SELECT pg_get_functiondef(%s::regprocedure)", (f"{name}(bigint)",)).fetchone()
        assert row is not None and FENCE in row[0], "the kit's admission looks different now: sabotage it anew"
        mail.execute(row[0].replace(FENCE, "IF false THEN"))


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    import django
    from django.core.management import call_command

    django.setup()
    from workers.demo.story import Story
    from workers.management.commands.demo import Command

    class Unfenced(Story):
        def release(self) -> None:
            """After the recovery: a plan would have noticed that the kit is not what was installed."""
            fence_remove(self.world.mail, self.world.kit_schema)
            super().release()

    class SabotagedCommand(Command):
        story = Unfenced

    call_command(SabotagedCommand(), *sys.argv[1:])


if __name__ == "__main__":
    main()
