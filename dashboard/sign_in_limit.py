"""How often somebody may sign in wrongly: a few times a name from one address, and some more from that address at all.

Counted in the cache that web processes share; where it does not answer, each process counts for itself, so that an
outage of Redis locks nobody out and opens nothing wide.
"""

from __future__ import annotations

import contextlib
import hashlib
import unicodedata
from collections.abc import Callable
from functools import partial
from ipaddress import IPv6Address, ip_address, ip_network
from typing import TypeVar

from django.core.cache import caches
from django.core.cache.backends.base import BaseCache
from redis.exceptions import RedisError

WINDOW_SECONDS = 300
TRIES_OF_A_NAME = 5
TRIES_OF_AN_ADDRESS = 30

T = TypeVar("T")


class WholeNumbers:
    """How counts lie in Redis. Django's own way unpickles what it reads, and whoever may write there would run code."""

    def dumps(self, value: int) -> str:
        return str(int(value))

    def loads(self, held: bytes | str) -> int:
        return int(held)


def try_begin(address: str, name: str) -> int:
    """Counts one try before it is looked at, so that many at once are counted too. How long to wait instead of looking
    at it; 0: it may be looked at. The window begins with the first."""
    counts = [(_cache(partial(_count, key)), limit) for key, limit in _keys(address, name)]
    return WINDOW_SECONDS if any(count > limit for count, limit in counts) else 0


def try_succeeded(address: str, name: str) -> None:
    """The right password: the name's tries from there are forgotten, and this one of the address's."""
    (of_name, _), (of_address, _) = _keys(address, name)
    _cache(lambda cache: cache.delete(of_name))
    _cache(partial(_uncount, of_address))


def _keys(address: str, name: str) -> list[tuple[str, int]]:
    """Hashed: a cache keeps nobody's name, and any text makes a valid key."""
    near = _network(address)
    both = hashlib.sha256(f"{near}\x00{name_normalise(name)}".encode("utf-8", "replace")).hexdigest()
    alone = hashlib.sha256(near.encode("utf-8", "replace")).hexdigest()
    return [(f"sign-in:{both}", TRIES_OF_A_NAME), (f"sign-in-from:{alone}", TRIES_OF_AN_ADDRESS)]


def name_normalise(name: str) -> str:
    """One spelling of a name: stripped and NFKC as Django's form has it, and without case and invisible characters.

    >>> [name_normalise(spelled) for spelled in (" ada", "\uff41da", "a\u200bda", "ADA\u3000")]
    ['ada', 'ada', 'ada', 'ada']
    """
    whole = unicodedata.normalize("NFKC", name.strip()).casefold()
    return "".join(one for one in whole if unicodedata.category(one) not in ("Cc", "Cf")).strip()


def _network(address: str) -> str:
    """The address; of IPv6 the network of 64 bits, all of which one customer has.

    >>> _network("192.0.2.7"), _network("2001:db8::7") == _network("2001:db8::8")
    ('192.0.2.7', True)
    """
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        return str(found.ipv4_mapped or ip_network((found, 64), strict=False))
    return str(found)


def _count(key: str, cache: BaseCache) -> int:
    cache.add(key, 0, WINDOW_SECONDS)
    try:
        return int(cache.incr(key))
    except ValueError:  # it expired in between
        cache.set(key, 1, WINDOW_SECONDS)
        return 1


def _uncount(key: str, cache: BaseCache) -> None:
    with contextlib.suppress(ValueError):  # it has expired
        cache.decr(key)


def _cache(use: Callable[..., T]) -> T:
    try:
        return use(caches["shared"])
    except (RedisError, OSError):
        return use(caches["default"])
