"""Tests keep credentials of ends in temporary folders, and so do the servers that are started here."""

import os
import tempfile

os.environ.setdefault("FENCEPOST_REFERENCE_FOLDERS", tempfile.gettempdir())
