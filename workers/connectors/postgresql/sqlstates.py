"""What a server's refusal is in our own words: by SQLSTATE, and by names that we supplied.

One law: no text of the server passes. Its messages quote values (`invalid input syntax for type bigint: "…"`), its DETAIL
and CONTEXT whole rows, and a function of somebody else's says whatever it likes. A state is five characters that hold
no value; its name comes from the driver's own list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from psycopg import errors

SENTENCES = {
    "08006": "the connection broke",
    "22001": "a text is longer than its column takes",
    "22003": "a number lies outside its type's range",
    "22007": "a text is no date or time",
    "22008": "a date or time lies outside its type's range",
    "22012": "something was divided by zero",
    "22021": "a text holds characters that the database's encoding has not",
    "22023": "a function was given a value that it does not take",
    "22P02": "a text cannot be read as its column's type",
    "22P05": "a text holds a character that jsonb or the client's encoding cannot hold",
    "23502": "a column that must not be null would be null",
    "23503": "a row that is referred to is not there",
    "23505": "a value that must be unique is there already",
    "23514": "a check constraint does not hold",
    "23P01": "an exclusion constraint does not hold",
    "25006": "the transaction, or the whole server, is read-only",
    "25P02": "the transaction had failed before",
    "25P03": "the session was idle in its transaction for longer than the server lets it",
    "25P04": "the transaction took longer than the server lets it",
    "28000": "the login is not let in",
    "28P01": "the password was not accepted",
    "3D000": "there is no such database",
    "3F000": "there is no such schema",
    "40001": "a concurrent change got in between",
    "40P01": "two transactions waited for each other",
    "42501": "this login lacks a right",
    "42601": "the server cannot parse the statement",
    "42703": "there is no such column",
    "42704": "there is no such object",
    "42804": "two types do not fit together",
    "42883": "there is no such function or operator for these types",
    "42P01": "there is no such table",
    "53100": "its disk is full",
    "53200": "it is out of memory",
    "53300": "it has no connection free",
    "55000": "it is not in a state that allows this",
    "55006": "the object is in use",
    "55P03": "a lock was not to be had in time",
    "57014": "the statement was cancelled, or took longer than it may",
    "57P01": "the server ended the session",
    "57P02": "the server crashed",
    "57P03": "the server is starting or stopping",
    "57P04": "the database was dropped",
    "57P05": "the session was idle for longer than the server lets it",
    "58030": "the server could not read or write its files",
    "P0001": "a function raised an error",
    "XX000": "the server met a defect of its own",
    "XX001": "the server found damaged data",
    "XX002": "the server found a damaged index",
}
"""Of the states that people meet; the others are said by their name in the driver's list."""

CONNECTING: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"password authentication failed|no password supplied|authentication failed", re.I),
        "the login or its password was not accepted",
    ),
    (re.compile(r"no pg_hba\.conf entry", re.I), "its pg_hba.conf does not let this login in from here"),
    (
        re.compile(r"role .* does not exist|not permitted to log in|permission denied", re.I),
        "there is no such login, or it may not connect here",
    ),
    (re.compile(r'database "?.*"? does not exist', re.I), "there is no such database"),
    (
        re.compile(r"invalid channel binding|certificate|SSL .*required|does not support SSL", re.I),
        "the encrypted connection was not accepted (sslmode, certificates)",
    ),
    (re.compile(r"translate host name|resolve|name or service not known", re.I), "the host's name is not known"),
    (
        re.compile(r"connection refused|No such file or directory", re.I),
        "the connection was refused: nobody listens there",
    ),
    (re.compile(r"time(d)? ?out", re.I), "no answer came in time"),
    (re.compile(r"unreachable|no route", re.I), "no network leads there"),
    (re.compile(r"starting up|shutting down|recovery", re.I), "the server is starting or stopping"),
    (re.compile(r"too many|remaining connection slots|no more connections", re.I), "it has no connection free"),
    (re.compile(r"closed|reset by peer|terminat|EOF", re.I), "the connection was closed"),
)
"""libpq gives a refused connection no SQLSTATE, only words: they choose the sentence, and stay behind."""

TYPE_REFUSED = re.compile(
    r"invalid input syntax for type (bigint|boolean|bytea|date|double precision|integer|jsonb?|numeric|pg_lsn|smallint"
    r"|timestamp with time zone|timestamp without time zone|uuid|xid8)\b"
)
"""A type of this list is the server's own, and its name holds no value."""

_ABOUT_NAMES = ("42", "3D", "3F")
"""Classes whose messages are about objects: only there a name of ours is looked for in what the server said."""


def sentence_of(sqlstate: str, said: str = "", names: Iterable[str] = ()) -> str:
    """The sentence of a state; with those of `names` (ours) that the server's message is about.

    >>> sentence_of("42P01", 'relation "public.mail" does not exist', ["mail", "outbox"])
    "there is no such table ('mail'; SQLSTATE 42P01)"
    >>> sentence_of("22P02", 'invalid input syntax for type bigint: "hush"', ["hush"])
    "a text cannot be read as its column's type (type bigint; SQLSTATE 22P02)"
    """
    about = [name for name in dict.fromkeys(names) if name and _is_named(name, said)]
    named = ", ".join(map(repr, about)) + "; " if about and sqlstate[:2] in _ABOUT_NAMES else ""
    if (type_ := TYPE_REFUSED.match(said)) is not None:
        named = f"type {type_[1]}; "
    return f"{SENTENCES.get(sqlstate) or _name_of(sqlstate)} ({named}SQLSTATE {sqlstate})"


def connecting_sentence_of(said: str) -> str:
    """What kept a connection from being made, from libpq's words.

    >>> connecting_sentence_of('FATAL:  password authentication failed for user "ada"')
    'the login or its password was not accepted'
    """
    return next((sentence for words, sentence in CONNECTING if words.search(said)), "the connection was not made")


def _is_named(name: str, said: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", said) is not None


def _name_of(sqlstate: str) -> str:
    """The state's name as the driver lists it: `invalid text representation`; one that it does not list is a function's own."""
    try:
        name = errors.lookup(sqlstate).__name__
    except KeyError:
        return "a function raised an error of its own"
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).lower()
