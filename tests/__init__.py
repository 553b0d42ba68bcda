"""Tests keep credentials and archives of ends in temporary folders, and so do the servers that are started here."""

import os
import tempfile

os.environ.setdefault("FENCEPOST_REFERENCE_FOLDERS", tempfile.gettempdir())
os.environ.setdefault("FENCEPOST_ARCHIVE_FOLDERS", tempfile.gettempdir())
