"""The folder that evidence is written to: what it answers when it is full, read-only or away, as the product's own error.

On executors, too.
"""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from recovery_api.domain.errors import EvidenceUnwritable

PASSING_NUMBERS = frozenset(
    {
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EROFS,
        errno.EACCES,
        errno.EPERM,
        errno.EIO,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.ESTALE,
        errno.ENOTCONN,
        errno.EAGAIN,
        errno.EBUSY,
        errno.EINTR,
        errno.ETIMEDOUT,
    }
)
"""What a full, a read-only or an unmounted folder answers, and a machine short of something. A missing file is none of
them: waiting brings it back to nobody."""
PROBE_BYTES = 64 * 2**10


def folder_error(error: OSError, folder: str = "the evidence folder") -> EvidenceUnwritable | None:
    """The error that may pass which `error` is, or None."""
    if error.errno not in PASSING_NUMBERS:
        return None
    return EvidenceUnwritable(str(error.filename or folder), os.strerror(error.errno)).because(error)


def folder_probe(folder: str) -> None:
    """Writes a little there and takes it away: before a claim, since a claim keeps the relay waiting.

    Raises: EvidenceUnwritable.
    """
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        reason = error.strerror or "no access"
        raise folder_error(error, folder) or EvidenceUnwritable(folder, reason) from error
