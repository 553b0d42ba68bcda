"""Where evidence lies, and what exists of it: a place, and the manifest of its objects.

One law: what exists is what a manifest names, by size and digest. A place may hold more (of attempts that died, or were
done twice), which nobody reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from recovery_api.domain.coordinates import Coordinate
from recovery_api.domain.errors import BadInput

SETTING = "FENCEPOST_EVIDENCE_URL"
SECRETS = ("access_key", "secret_key", "session_token")
"""Options of a bucket that are references, and nothing else."""
OPTIONS = ("region", "endpoint_override", "scheme", *SECRETS)


@dataclass(frozen=True, slots=True)
class Place:
    """A folder (`bucket` ""), or what lies under `path` in a bucket, with how that is reached. No secret, only references."""

    path: str
    bucket: str = ""
    options: Mapping[str, str] | None = None

    @property
    def is_folder(self) -> bool:
        return not self.bucket


def place_parse(url: str) -> Place:
    """Raises: BadInput where it is neither a folder nor a bucket, or holds a secret.

    >>> place_parse("file:///srv/evidence").path
    '/srv/evidence'
    >>> place_parse("s3://bucket/fencepost?region=eu-west-1").bucket
    'bucket'
    """
    parts = urlsplit(url)
    if parts.scheme in ("", "file") or "://" not in url:
        if parts.scheme == "file":
            if parts.netloc or not parts.path.startswith("/"):
                raise BadInput(SETTING, "names no folder of this machine", "Like file:///srv/evidence.")
            return Place(unquote(parts.path).rstrip("/") or "/")
        return Place(url)
    if parts.scheme != "s3":
        raise BadInput(
            SETTING, f"{parts.scheme}: is no store that evidence can lie in", "Name a folder, or s3://bucket/…."
        )
    if "@" in parts.netloc:
        raise BadInput(
            SETTING, "holds a key", "Give access_key=env:… and secret_key=env:…, or leave it to the environment."
        )
    if not parts.netloc:
        raise BadInput(SETTING, "names no bucket", "Like s3://bucket/fencepost?region=eu-west-1.")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name, value in options.items():
        if name not in OPTIONS:
            raise BadInput(SETTING, f"{name} is no option of a bucket", f"One of: {', '.join(OPTIONS)}.")
        if name in SECRETS and not value.startswith(("env:", "file:")):
            raise BadInput(
                SETTING, f"{name} is no reference", f"Like {name}=env:FENCEPOST_END_S3: the name of a variable."
            )
    if ("access_key" in options) != ("secret_key" in options):
        raise BadInput(SETTING, "names one of access_key and secret_key", "Give both, or neither.")
    return Place(unquote(parts.path).strip("/"), parts.netloc, options)


def url_below(url: str, *names: str) -> str:
    """The place `names` below `url`, reached in the same way.

    >>> url_below("s3://bucket/fencepost?region=eu-west-1", "audits", "7")
    's3://bucket/fencepost/audits/7?region=eu-west-1'
    """
    base, mark, query = url.partition("?") if url.startswith("s3://") else (url, "", "")
    return "/".join([base.rstrip("/"), *names]) + mark + query


def url_split(url: str) -> tuple[str, str]:
    """A place and the name of an object there: what `url_below` put together.

    >>> url_split("s3://bucket/archive/7/a.parquet?region=eu-west-1")
    ('s3://bucket/archive/7?region=eu-west-1', 'a.parquet')
    """
    base, mark, query = url.partition("?") if url.startswith("s3://") else (url, "", "")
    place, _, name = base.rpartition("/")
    return place + mark + query, name


def is_below(url: str, store: str) -> bool:
    """Whether a place lies in this store.

    >>> is_below("s3://bucket/a/7", "s3://bucket/a?region=x"), is_below("s3://bucket/ab", "s3://bucket/a")
    (True, False)
    """
    return uri_of(url).startswith(f"{uri_of(store).rstrip('/')}/")


def uri_of(url: str) -> str:
    """The place as rows and people have it: without how it is reached."""
    return url.partition("?")[0] if url.startswith("s3://") else url


def url_of(uri: str, store: str) -> str:
    """How a place of the store is reached: as the store itself is."""
    base, mark, query = store.partition("?")
    is_below = store.startswith("s3://") and uri.startswith(f"{base.rstrip('/')}/")
    return uri + mark + query if is_below else uri


@dataclass(frozen=True, slots=True)
class Written:
    """One object that was written whole. `sort`: of what it is a part; `number`: of which range, set or slice.

    `lane`, `low`, `high`: the lane of its rows, where they have one, and the lowest and the highest of their coordinates.
    """

    sort: str
    number: int
    name: str
    size: int
    digest: str
    rows: int
    lane: str | None = None
    low: Coordinate | None = None
    high: Coordinate | None = None

    def as_row(self) -> list[Any]:
        """For a task's summary and for the manifest: positions as text."""
        pairs = [None if one is None else [str(one.position), str(one.ordinal)] for one in (self.low, self.high)]
        return [self.sort, self.number, self.name, self.size, self.digest, self.rows, self.lane, *pairs]


def written_from_row(row: Iterable[Any]) -> Written:
    *plain, low, high = row
    pairs = (None if one is None else Coordinate(int(one[0]), int(one[1])) for one in (low, high))
    return Written(*plain, *pairs)


@dataclass(frozen=True, slots=True)
class Stored:
    """A place with its manifest, in the order of its parts."""

    url: str
    objects: tuple[Written, ...] = ()

    @property
    def uri(self) -> str:
        return uri_of(self.url)

    def of(self, sort: str, number: int | None = None) -> tuple[Written, ...]:
        return tuple(one for one in self.objects if one.sort == sort and number in (None, one.number))

    def numbers(self, sort: str) -> list[int]:
        """Of which ranges there is anything."""
        return sorted({one.number for one in self.objects if one.sort == sort})

    def with_(self, more: Iterable[Written]) -> Stored:
        found = sorted([*self.objects, *more], key=lambda one: (one.sort, one.number))
        return replace(self, objects=tuple(found))


NOTHING = Stored("")


def stored_make(url: str, rows: Iterable[Iterable[Any]]) -> Stored:
    """From rows of `Written.as_row`."""
    return Stored(url).with_(map(written_from_row, rows))
