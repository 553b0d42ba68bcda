"""Putting, getting and removing one object at a place: in a folder or in a bucket. On executors, too.

The law: an object is there whole or not at all. In a folder it gets its name by a rename; in a bucket it is one PUT, below
the size from which Arrow would send it in pieces.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from recovery_api.domain.errors import AccessDenied, EvidenceGone, EvidenceUnwritable, FencepostError, Unsuitable
from recovery_api.domain.evidence_places import SECRETS, Place, place_parse, uri_of
from workers.connectors.credentials import credential_resolve
from workers.evidence.folder import folder_error, folder_probe

if TYPE_CHECKING:
    from pyarrow.fs import S3FileSystem

CONNECT_SECONDS, ANSWER_SECONDS = 5, 60
ATTEMPTS = 4
"""Of one request to a bucket, each later than the one before; then it is an error that may pass."""

PUT_MOST = 9 * 2**20
"""Of an object in a bucket. From 10 MiB on Arrow sends pieces, which the store puts together when all are there."""

_buckets: dict[tuple[int, str, str], S3FileSystem] = {}


def object_put(url: str, name: str, body: bytes | memoryview) -> None:
    """Raises: EvidenceUnwritable; AccessDenied; Unsuitable where it is larger than one PUT to a bucket may be."""
    place = place_parse(url)
    if not place.is_folder and len(body) > PUT_MOST:
        problem = f"{name} has {len(body):,} bytes, and one object in a bucket holds {PUT_MOST:,} at most"
        raise Unsuitable(uri_of(url), problem, "Keep evidence in a folder, or make single rows smaller.")
    if place.is_folder:
        try:
            _folder_put(Path(place.path), name, body)
        except OSError as error:
            raise _folder_error(error, place) from error
        return
    with _bucket_errors(url), _bucket(place).open_output_stream(_key(place, name), buffer_size=0) as stream:
        stream.write(body)


def object_get(url: str, name: str) -> bytes:
    """Raises: EvidenceGone where there is no such object; EvidenceUnwritable; AccessDenied."""
    place = place_parse(url)
    try:
        if place.is_folder:
            return (Path(place.path) / name).read_bytes()
        with _bucket_errors(url), _bucket(place).open_input_file(_key(place, name)) as file:
            return bytes(file.read())
    except FileNotFoundError as error:
        raise EvidenceGone(name, uri_of(url), "it is not there") from error
    except NotADirectoryError as error:
        raise EvidenceGone(name, uri_of(url), "it is not there") from error
    except OSError as error:
        raise _folder_error(error, place) from error


def object_remove(url: str, name: str) -> None:
    """Takes the object away, if it is there. Raises: EvidenceUnwritable; AccessDenied."""
    place = place_parse(url)
    try:
        if place.is_folder:
            (Path(place.path) / name).unlink(missing_ok=True)
            return
        with _bucket_errors(url):
            _bucket(place).delete_file(_key(place, name))
    except FileNotFoundError:
        return
    except OSError as error:
        raise _folder_error(error, place) from error


def objects_list(url: str) -> list[tuple[str, float]]:
    """Name and age of last change (epoch seconds) of everything at the place. For the sweep alone: readers never list."""
    from pyarrow.fs import FileSelector, FileType

    place = place_parse(url)
    try:
        if place.is_folder:
            folder = Path(place.path)
            return [(one.name, one.stat().st_mtime) for one in folder.iterdir()] if folder.is_dir() else []
        with _bucket_errors(url):
            found = _bucket(place).get_file_info(FileSelector(_key(place), allow_not_found=True))
    except OSError as error:
        raise _folder_error(error, place) from error
    return [(one.base_name, one.mtime_ns / 1e9) for one in found if one.type is FileType.File]


def objects_sizes(url: str) -> dict[str, int]:
    """How large everything at the place is, by name. Empty where there is no such place. Raises: EvidenceUnwritable; AccessDenied."""
    from pyarrow.fs import FileSelector, FileType

    place = place_parse(url)
    try:
        if place.is_folder:
            return _folder_sizes(Path(place.path))
        with _bucket_errors(url):
            found = _bucket(place).get_file_info(FileSelector(_key(place), allow_not_found=True))
    except OSError as error:
        raise _folder_error(error, place) from error
    return {one.base_name: one.size for one in found if one.type is FileType.File}


def object_renew(url: str, name: str) -> None:
    """Has the object be as old as if it were put now. Raises: EvidenceGone; EvidenceUnwritable; AccessDenied."""
    place = place_parse(url)
    if not place.is_folder:
        object_put(url, name, object_get(url, name))
        return
    try:
        os.utime(Path(place.path) / name)
    except OSError as error:
        raise _folder_error(error, place) from error


def place_remove(url: str) -> None:
    """Takes away everything at the place. Raises: EvidenceUnwritable; AccessDenied."""
    import shutil

    place = place_parse(url)
    try:
        if place.is_folder:
            shutil.rmtree(place.path)
            return
        with _bucket_errors(url):
            _bucket(place).delete_dir(_key(place))
    except FileNotFoundError:
        return
    except OSError as error:
        raise _folder_error(error, place) from error


def store_open(url: str) -> None:
    """Makes the store's folder where there is none yet. Raises: EvidenceUnwritable."""
    place = place_parse(url)
    if place.is_folder:
        try:
            Path(place.path).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _folder_error(error, place) from error


def store_probe(url: str) -> None:
    """Writes a little there and takes it away: before a claim, since a claim keeps the relay waiting.

    Raises: EvidenceUnwritable; AccessDenied.
    """
    place = place_parse(url)
    if place.is_folder:
        folder_probe(place.path)
        return
    name = f"probe-{uuid4().hex}"
    object_put(url, name, b"fencepost")
    if object_get(url, name) != b"fencepost":
        raise EvidenceUnwritable(uri_of(url), "what was written there was read back otherwise")
    object_remove(url, name)


def _folder_sizes(folder: Path) -> dict[str, int]:
    sizes = {}
    for one in folder.iterdir() if folder.is_dir() else ():
        with suppress(FileNotFoundError):  # an attempt that got its name meanwhile
            sizes[one.name] = one.stat().st_size
    return sizes


def _folder_put(folder: Path, name: str, body: bytes | memoryview) -> None:
    attempt = folder / f".{name}.writing"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with attempt.open("wb") as file:
            file.write(body)
        attempt.replace(folder / name)
    except OSError:
        _forget(attempt)
        raise


def _forget(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return


def _folder_error(error: OSError, place: Place) -> FencepostError:
    return folder_error(error, place.path) or EvidenceUnwritable(
        str(error.filename or place.path), error.strerror or type(error).__name__
    )


def _key(place: Place, *names: str) -> str:
    return "/".join(filter(None, (place.bucket, place.path, *names)))


def _bucket(place: Place) -> S3FileSystem:
    """One client a process: it has threads, and does not outlive a fork."""
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem

    options = dict(place.options or {})
    key = (os.getpid(), place.bucket, repr(sorted(options.items())))
    if key not in _buckets:
        for name in SECRETS:
            if name in options:
                options[name] = credential_resolve(options[name])
        _buckets[key] = S3FileSystem(
            allow_delayed_open=True,  # else Arrow asks for an upload in pieces before it knows the size
            connect_timeout=CONNECT_SECONDS,
            request_timeout=ANSWER_SECONDS,
            retry_strategy=AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
            **options,
        )
    return _buckets[key]


DENIED = ("ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH", "HTTP status 403", "EXPIRED_TOKEN")
AWAY = {
    "NO_SUCH_BUCKET": "there is no such bucket",
    "NETWORK_CONNECTION": "the store does not answer",
    "SLOW_DOWN": "the store asks to be asked less often (SLOW_DOWN)",
    "SERVICE_UNAVAILABLE": "the store is not available (SERVICE_UNAVAILABLE)",
}


@contextmanager
def _bucket_errors(url: str) -> Iterator[None]:
    """Arrow's errors of a bucket are text alone: the one place that reads it. None of it is passed on but AWS's own word."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        text = str(error)
        where = uri_of(url)
        if any(sign in text for sign in DENIED):
            remedy = "Check the key, and that it may put, get, list and delete there."
            raise AccessDenied(where, "the store refuses this credential", remedy) from error
        if "NO_SUCH_KEY" in text:
            raise FileNotFoundError(where) from error
        word = next((says for sign, says in AWAY.items() if sign in text), "")
        named = re.search(r"AWS Error ([A-Z_]+)", text)
        status = re.search(r"HTTP status (\d{3})", text)
        reason = word or " ".join(one[1] for one in (named, status) if one) or type(error).__name__
        raise EvidenceUnwritable(where, reason) from error
