"""Sums of digests: the batch digest's algebra (docs/architecture.md), in which blocks add up and items balance them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

EMPTY = "0:0:0:0"


def sum_add(*sums: str) -> str:
    """The sum of disjoint batches together.

    >>> sum_add("1:-2:3:4", "1:1:1:1"), sum_add()
    ('2:-1:4:5', '0:0:0:0')
    """
    limbs = zip(*(map(int, one.split(":")) for one in (EMPTY, *sums)), strict=True)
    return ":".join(str(sum(limb)) for limb in limbs)


def sum_subtract(one: str, other: str) -> str:
    """What is left of a batch without another.

    >>> sum_subtract("2:-1:4:5", "1:1:1:1")
    '1:-2:3:4'
    """
    pairs = zip(one.split(":"), other.split(":"), strict=True)
    return ":".join(str(int(first) - int(second)) for first, second in pairs)


@dataclass(frozen=True, slots=True)
class Counted:
    """So many, and the sum of their entry digests."""

    count: int = 0
    sum: str = EMPTY

    def __add__(self, other: Counted) -> Counted:
        return Counted(self.count + other.count, sum_add(self.sum, other.sum))

    def __sub__(self, other: Counted) -> Counted:
        return Counted(self.count - other.count, sum_subtract(self.sum, other.sum))


def is_balanced(committed: Counted, accepted: Counted, lost: Iterable[Counted], surplus: Iterable[Counted]) -> bool:
    """A block's invariant: what was committed less what was accepted is the signed sum of its items.

    `lost`: obligations without an acceptance. `surplus`: acceptances without an obligation, and further copies.

    >>> one, two = Counted(1, "1:0:0:0"), Counted(1, "2:0:0:0")
    >>> is_balanced(one + two, one, [two], []), is_balanced(one + two, one + one, [two], [one])
    (True, True)
    >>> is_balanced(one + two, one, [], [])
    False
    """
    signed = sum(lost, Counted()) - sum(surplus, Counted())
    return committed - accepted == signed
