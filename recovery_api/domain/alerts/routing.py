"""Who is told of an alert: routes in their order, by cause, severity and label.

The law: an alert is told by the first route that fits it, and by each further one as long as a route says *and the next*. The
rest that fit are spares: where a destination fails, the next spare is paged. Without a route that fits, nobody is, and that is
shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from recovery_api.domain.alerts.causes import Cause, Severity


@dataclass(frozen=True, slots=True)
class Route:
    """`position`: where it stands. `least`: the least severity that it takes. `causes` empty: every one. `labels`: all must be
    the alert's. `goes_on`: the next route that fits is told, too."""

    key: int
    position: int
    destination: int
    least: Severity = Severity.WARNING
    causes: frozenset[str] = frozenset()
    labels: Mapping[str, str] = field(default_factory=dict)
    goes_on: bool = False

    def takes(self, cause: Cause, severity: Severity, labels: Mapping[str, str]) -> bool:
        if severity.rank < self.least.rank or (self.causes and cause.value not in self.causes):
            return False
        return all(labels.get(name) == value for name, value in self.labels.items())


@dataclass(frozen=True, slots=True)
class Way:
    """Destinations by their keys: those that are told, and the spares in their order."""

    told: tuple[int, ...] = ()
    spares: tuple[int, ...] = ()

    @property
    def is_nobody(self) -> bool:
        return not self.told

    def as_text(self) -> str:
        """As kept with a group: alerts that go other ways are no group.

        >>> Way((3, 5), (9,)).as_text(), Way.from_text("3,5|9")
        ('3,5|9', Way(told=(3, 5), spares=(9,)))
        """
        return "|".join(",".join(map(str, keys)) for keys in (self.told, self.spares))

    @classmethod
    def from_text(cls, text: str) -> Way:
        told, _, spares = text.partition("|")
        return cls(*(tuple(int(key) for key in keys.split(",") if key) for keys in (told, spares)))


def way_of(cause: Cause, severity: Severity, labels: Mapping[str, str], routes: Sequence[Route]) -> Way:
    """The way of one alert."""
    told: list[int] = []
    spares: list[int] = []
    goes_on = True
    for route in sorted(routes, key=lambda one: (one.position, one.key)):
        if not route.takes(cause, severity, labels) or route.destination in (*told, *spares):
            continue
        (told if goes_on else spares).append(route.destination)
        goes_on = goes_on and route.goes_on
    return Way(tuple(told), tuple(spares))


def spare_next(way: Way, used: Sequence[int]) -> int | None:
    """The next destination to page where one fails; None: there is none left."""
    return next((key for key in way.spares if key not in used), None)
