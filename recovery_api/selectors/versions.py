"""Which configuration of a pipeline, a source, a sink or a destination somebody read: its `ETag`, by which a change says what it changes.

Only what an edit can change counts. A connection test, or what a sink said last, makes no other version.
"""

from __future__ import annotations

import hashlib
import json

from recovery_api.domain.errors import Outdated
from recovery_api.models import Destination, End, Pipeline


def version_of(one: Destination | End | Pipeline) -> str:
    """The same text for the same configuration, and for no other."""
    if isinstance(one, Pipeline):
        kept = {
            "delivery": one.delivery_id,
            "scope": one.scope,
            "options": one.options,
            "requires_other_approver": one.requires_other_approver,
        }
    elif isinstance(one, Destination):
        kept = {"address": one.address, "secret": one.secret}
    else:
        kept = {"kind": one.kind, "options": one.options}
    whole = json.dumps([one._meta.model_name, one.pk, kept], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()[:32]


def version_check(one: Destination | End | Pipeline, read: frozenset[str] | None) -> None:
    """Of the row as it is held now. `read`: the versions that the change was made for; None: it does not say.

    Raises: Outdated where it is none of them.
    """
    if read is not None and version_of(one) not in read:
        raise Outdated(f"{one._meta.model_name} {one.name}", version_of(one))
