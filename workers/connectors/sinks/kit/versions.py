"""Which version of the kit lies where, and the one sentence that every refusal of another version says.

The law: a version whose text differs keeps the row that every call reads in a table of another name than the version
before. A call that waited inside an older text's function while the kit was upgraded asks for a table that is no more,
and fails; it is accepted past the new lock otherwise.
"""

from __future__ import annotations

from recovery_api.domain.errors import Unsuitable
from workers.connectors.sinks.kit import KIT_VERSION

FACTS_TABLE = {1: "protocol", 2: "protocol", 3: "protocol", 4: "kit", 5: "standing"}
"""The table that holds fence, version and effect, by version."""
FACTS_TABLES = sorted(set(FACTS_TABLE.values()))


def version_remedy(version: int, schema: str) -> str:
    """What to do about a kit of another version."""
    if version > KIT_VERSION:
        return f"Upgrade Fencepost to one that speaks version {version}; it was not touched."
    return f"Upgrade it in place: manage.py sink_install … --schema {schema} --upgrade (record and counters are kept)."


def version_says(version: int) -> str:
    """Which version is installed, and which this Fencepost writes: a clause."""
    return f"version {version} of the sink kit is installed; this Fencepost writes version {KIT_VERSION}"


def version_refuse(version: int, schema: str) -> Unsuitable:
    """The refusal of a step at a kit of another version."""
    return Unsuitable(f"schema {schema!r}", version_says(version), version_remedy(version, schema))


def unfenced_by_version(version: int, schema: str) -> str:
    """Why a kit of another version is only read: a sentence, with what to do."""
    says = version_says(version)
    return f"{says[0].upper()}{says[1:]}. It is read, not fired at, until it is upgraded. {version_remedy(version, schema)}"


def is_known(version: int) -> bool:
    """Whether this Fencepost can read a kit of this version."""
    return version in FACTS_TABLE
