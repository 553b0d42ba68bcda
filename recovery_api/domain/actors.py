"""Who did something: a person who signed in, a process, or a name that somebody typed at a command.

The law: a typed name is not a person. Commands run with the rights of whoever runs them, so what they did is marked
*by command, as NAME (not signed in)* wherever it is shown, and is no second pair of eyes.
"""

from __future__ import annotations

from recovery_api.domain.errors import BadInput

BEFORE, AFTER = "by command, as ", " (not signed in)"
NAME_AT_MOST = 150


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


def by(actor: str) -> str:
    """For the end of a sentence.

    >>> by("ada"), by("by command, as ada (not signed in)")
    ('by ada', 'by command, as ada (not signed in)')
    """
    return actor if is_by_command(actor) else f"by {actor}"


def subject(actor: str) -> str:
    """For the start of a sentence.

    >>> subject("by command, as ada (not signed in)")
    'ada (by command, not signed in)'
    """
    return f"{actor_name(actor)} (by command, not signed in)" if is_by_command(actor) else actor
