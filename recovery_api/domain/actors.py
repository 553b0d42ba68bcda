"""Who did something: a person who signed in, a process, or a name that somebody typed at a command.

The law: a typed name is not a person. Commands run with the rights of whoever runs them, so what they did is marked
*by command, as NAME (not signed in)* wherever it is shown, and is no second pair of eyes.
"""

from __future__ import annotations

import re

from recovery_api.domain.errors import BadInput

BEFORE, AFTER = "by command, as ", " (not signed in)"
NAME_AT_MOST = 150
HERE = "here"
PROCESS = re.compile(r"(?P<host>[^/\s]+)/[0-9]+(?:/(?P<delivery>.+))?")
"""How a worker, or a command that works itself, calls itself: host/process/delivery."""


def actor_by_command(name: str) -> str:
    """
    >>> actor_by_command("team-lead")
    'by command, as team-lead (not signed in)'

    Raises: BadInput for a name that is empty, too long, or marked already.
    """
    given = name.strip()
    if not given or len(given) > NAME_AT_MOST or given.startswith(BEFORE):
        raise BadInput(
            "--actor", f"{name[:40]!r} is no name", f"Give who is asking, in at most {NAME_AT_MOST} letters."
        )
    return f"{BEFORE}{given}{AFTER}"


def is_by_command(actor: str) -> bool:
    return actor.startswith(BEFORE) and actor.endswith(AFTER)


def actor_name(actor: str) -> str:
    """The bare name, to be compared: whoever typed a name may be whoever has it.

    >>> actor_name("by command, as ada (not signed in)"), actor_name("ada")
    ('ada', 'ada')
    """
    return actor[len(BEFORE) : -len(AFTER)] if is_by_command(actor) else actor


def process_says(actor: str) -> str | None:
    """What works under the name of a process (host, process, and which delivery), as a person says it. None: it is no process's.

    A person's name has no slash.

    >>> process_says("mail-7f/4711/5b0c"), process_says("mail-7f/4711/here"), process_says("ada")
    ('a worker on mail-7f', 'a command on mail-7f', None)
    """
    found = None if is_by_command(actor) else PROCESS.fullmatch(actor)
    if found is None:
        return None
    return f"a {'command' if found['delivery'] == HERE else 'worker'} on {found['host']}"


def by(actor: str) -> str:
    """For the end of a sentence.

    >>> by("ada"), by("by command, as ada (not signed in)"), by("mail-7f/4711/5b0c")
    ('by ada', 'by command, as ada (not signed in)', 'by a worker on mail-7f')
    """
    return actor if is_by_command(actor) else f"by {process_says(actor) or actor}"


def subject(actor: str) -> str:
    """For the start of a sentence.

    >>> subject("by command, as ada (not signed in)"), subject("mail-7f/4711/5b0c")
    ('ada (by command, not signed in)', 'A worker on mail-7f')
    """
    if (process := process_says(actor)) is not None:
        return process[0].upper() + process[1:]
    return f"{actor_name(actor)} (by command, not signed in)" if is_by_command(actor) else actor
