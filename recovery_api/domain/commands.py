"""A command line as people are told to type it: quoted, so that a name with a space or a quote stays one word."""

from __future__ import annotations

import shlex


def command_line(*words: object) -> str:
    """`manage.py` with these words; empty ones are left out.

    >>> command_line("audit", "it's", "--wait")
    'manage.py audit \\'it\\'"\\'"\\'s\\' --wait'
    """
    return shlex.join(["manage.py", *(str(word) for word in words if word not in ("", None))])
