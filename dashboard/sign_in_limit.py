"""How often somebody may sign in wrongly: a few times a name from one address, and some more from that address at all.

Counted in the cache that web processes share; where it does not answer, each process counts for itself, so that an
outage of Redis locks nobody out and opens nothing wide.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from django.core.cache import caches
from django.core.cache.backends.base import BaseCache
from redis.exceptions import RedisError

WINDOW_SECONDS = 300
TRIES_OF_A_NAME = 5
TRIES_OF_AN_ADDRESS = 30

T = TypeVar("T")


def wait_seconds(address: str, name: str) -> int:
    """How long to wait before another try is looked at; 0: it may be tried now."""
    counts = _cache(lambda cache: cache.get_many([key for key, _ in _keys(address, name)]))
    is_over = any(counts.get(key, 0) >= limit for key, limit in _keys(address, name))
    return WINDOW_SECONDS if is_over else 0


def failed(address: str, name: str) -> None:
    """Counts one wrong try. The window begins with the first."""
    for key, _ in _keys(address, name):
        _cache(partial(_count, key))


def succeeded(address: str, name: str) -> None:
    """The right password: the name's wrong tries from there are forgotten; the address's are not."""
    _cache(lambda cache: cache.delete(_keys(address, name)[0][0]))


def _keys(address: str, name: str) -> list[tuple[str, int]]:
    """Hashed: a cache keeps nobody's name, and any text makes a valid key."""
    both = hashlib.sha256(f"{address}\x00{name.casefold()}".encode("utf-8", "replace")).hexdigest()
    alone = hashlib.sha256(address.encode("utf-8", "replace")).hexdigest()
    return [(f"sign-in:{both}", TRIES_OF_A_NAME), (f"sign-in-from:{alone}", TRIES_OF_AN_ADDRESS)]


def _count(key: str, cache: BaseCache) -> None:
    cache.add(key, 0, WINDOW_SECONDS)
    try:
        cache.incr(key)
    except ValueError:  # it expired in between
        cache.set(key, 1, WINDOW_SECONDS)


def _cache(use: Callable[..., T]) -> T:
    try:
        return use(caches["shared"])
    except (RedisError, OSError):
        return use(caches["default"])
