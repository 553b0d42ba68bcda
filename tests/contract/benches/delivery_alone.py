"""The delivery alone: only this bench can look into it."""

from __future__ import annotations

import secrets
from typing import Any

from recovery_api.domain.abilities import Ability
from tests.contract.benches import Place
from tests.contract.delivery_alone import OFFICES
from workers.connectors.protocols.appended import AppendedDelivery
from workers.connectors.registry import delivery_make

CANNOT: dict[str, str] = {}


class AloneBench:
    kind = "delivery_alone"

    def __init__(self, place: Place) -> None:
        self.options: dict[str, Any] = {"name": secrets.token_hex(8)}

    def delivery(self) -> AppendedDelivery:
        return delivery_make(self.kind, self.options, Ability.APPENDED)

    def held(self) -> dict[int, bytes]:
        held = OFFICES[self.options["name"]].held
        return {row["position"]: row["payload_digest"] for row in held.values()}


MAKES = {"": AloneBench}
