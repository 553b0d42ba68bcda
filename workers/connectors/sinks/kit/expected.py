"""What the kit of a version installs, object by object, and how an installation differs from it: a sentence each.

The law: expectations come from the released text. What the catalogue says of objects is in `released/facts.json`, made
by installing each text (`tests/integration/kit/test_facts.py` makes it again and compares); a function's body is the
text between its dollars, rendered for this sink. Of a version with several texts the nearest counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

from recovery_api.domain.kinds.postgresql_kit import Effect, KitOptions
from workers.connectors.sinks.kit import FOLLOWED_INDEX, kit_sql, quoted, text
from workers.connectors.sinks.kit.facts import Installed, KeyType
from workers.connectors.sinks.kit.releases import RELEASED, Release, releases_of

REFERENCE_WAIT_SECONDS = 37
"""The wait that the facts were made with; the one that was installed is put in its place."""
IDENTITY_KEY = "coordinate_is_accepted_once"
_WAIT = re.compile(r"(wait_seconds double precision DEFAULT )\(?(\d+)\)?(?:::double precision)?")
_SAME_KEY = re.compile(r"body RETURN \(\(*a\)?(::\w+)? (=|OPERATOR\(\S+\.=\)) \(*b\)?(::\w+)?( COLLATE [^()]+)?\)+$")
_COMPARED = "body RETURN (compared by the key's own operator)"
_MATTERS = ("table", "column", "constraint", "index", "function")
"""Kinds whose absence or change takes something of the protocol away."""
_MEETS = ("trigger", "rule", "policy")
"""Kinds that see or change what is delivered, so that one too many matters as well."""
_SHOWN = 160


@dataclass(frozen=True, slots=True)
class Difference:
    """One object that is not as its version of the kit installs it: missing, one too many, or changed."""

    kind: str
    object: str
    state: str
    says: str

    @property
    def is_of_speed(self) -> bool:
        """Whether only an audit's speed is at stake: nothing that the kit decides rests on this index."""
        return self.object == f"accepted.{FOLLOWED_INDEX}"

    @property
    def breaks_admission(self) -> bool:
        """Whether what the kit's functions decide can no longer be relied on."""
        if self.is_of_speed:
            return False
        if self.kind in _MEETS:
            return self.state != "missing"
        return self.kind in _MATTERS and self.state != "extra"

    @property
    def breaks_identity(self) -> bool:
        """Whether a coordinate may be accepted twice."""
        return self.state != "extra" and self.object == f"accepted.{IDENTITY_KEY}"


@cache
def facts_of(release: str, effect: str) -> Mapping[str, str]:
    """The facts of a release with this effect (none, target, function). Raises: LookupError where none were made."""
    rows = json.loads((RELEASED / "facts.json").read_text(encoding="utf-8"))
    facts: dict[str, str] = {}
    for row in rows:  # each says what changed since the one before it
        for name in row["gone"]:
            facts.pop(name, None)
        facts |= row["facts"]
        if (row["release"], row["effect"]) == (release, effect):
            return facts
    raise LookupError(f"no facts were made of release {release} with the effect {effect}")


def bodies_of(release: Release, options: KitOptions, database: str) -> Mapping[str, list[str]]:
    """Function name -> the bodies that the text gives it, one for each function of that name."""
    made = re.compile(
        rf"^CREATE FUNCTION {re.escape(quoted(options.schema))}\.([a-z_0-9]+)\(.*?\bAS \$\$(.*?)\$\$;?$", re.M | re.S
    )
    bodies: dict[str, list[str]] = {}
    for name, body in made.findall(kit_sql(options, database, release.text)):
        bodies.setdefault(name, []).append(body)
    return bodies


def differences(installed: Installed, options: KitOptions, database: str, version: int) -> list[Difference]:
    """How what is installed differs from what this version installs; from the nearest of its texts."""
    asked = replace(
        options,
        lock_wait_seconds=_wait_installed(installed) or options.lock_wait_seconds,
        effect=_as_ordered(installed, options.effect),
    )
    by_release = [
        [*_facts_differ(installed, release, asked), *_bodies_differ(installed, release, asked, database)]
        for release in releases_of(version)
    ]
    return min(by_release, key=len)


def _wait_installed(installed: Installed) -> int | None:
    """The bound of a wait that the kit was installed with: `begin` says it, and every other function must say the same."""
    for name, fact in installed.facts.items():
        if name.startswith("function begin(") and (said := _WAIT.search(fact)):
            return int(said[2])
    return None


def _as_ordered(installed: Installed, effect: Effect) -> Effect:
    """The effect with its columns in the order in which the installed text names them: registered options keep none."""
    body = next((found for name, found in installed.bodies.items() if name.startswith("effect_of_event(")), "")
    places = {member: body.find(f".content -> {text(member)}") for member in effect.columns}
    return replace(
        effect, columns={member: effect.columns[member] for member in sorted(places, key=places.__getitem__)}
    )


def _facts_differ(installed: Installed, release: Release, options: KitOptions) -> Iterator[Difference]:
    kit = f"version {release.version} of the kit"
    expected = _expected(release, options, installed.key)
    for name in sorted({*expected, *installed.facts}):
        held, wanted = installed.facts.get(name), expected.get(name)
        kind, _, thing = name.partition(" ")
        label = (
            f"{kind.capitalize()} {'of' if kind == 'owner' else 'on'} {thing}" if kind in ("owner", "grants") else name
        )
        if wanted is None:
            yield Difference(kind, thing, "extra", f"{label}: {kit} makes none. It is: {_short(held or '')}.")
        elif held is None:
            yield Difference(
                kind, thing, "missing", f"{label}: missing. {kit.capitalize()} makes it: {_short(wanted)}."
            )
        elif _same_key(name, held) != _same_key(name, wanted):
            yield Difference(kind, thing, "changed", f"{label}: it is {_short(held)}; {kit} makes it {_short(wanted)}.")


def _bodies_differ(installed: Installed, release: Release, options: KitOptions, database: str) -> Iterator[Difference]:
    expected = bodies_of(release, options, database)
    for name, body in sorted(installed.bodies.items()):
        wanted = expected.get(name.partition("(")[0])
        if wanted is not None and body not in wanted:
            yield Difference(
                "function",
                name,
                "changed",
                f"function {name}: its text is not that of version {release.version} of the kit.",
            )


def _expected(release: Release, options: KitOptions, key: KeyType | None) -> dict[str, str]:
    """The release's facts with the wait that was installed and the type of the target's key."""
    facts = {}
    for name, fact in facts_of(release.name, options.effect.kind).items():
        if release.text.has_typed_keys and key is not None:
            name = name.replace("is_same_key(a text, b text)", f"is_same_key(a {key.base}, b {key.base})")
            fact = fact.replace("arguments a text, b text", f"arguments a {key.base}, b {key.base}")
            if name == "column applied.key":
                fact = fact.replace("text", f"{key.type}{key.collation}", 1)
        facts[name] = _WAIT.sub(
            lambda found: (
                f"{found[1]}{options.lock_wait_seconds if int(found[2]) == REFERENCE_WAIT_SECONDS else found[2]}"
            ),
            fact,
        )
    return facts


def _same_key(name: str, fact: str) -> str:
    """A fact as it is compared: a wait without its cast, and any operator that compares keys as one."""
    fact = _WAIT.sub(r"\1\2", fact)
    return _SAME_KEY.sub(_COMPARED, fact) if name.startswith("function is_same_key(") else fact


def _short(fact: str) -> str:
    return fact if len(fact) <= _SHOWN else f"{fact[:_SHOWN]}…"
