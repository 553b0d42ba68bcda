"""Spark's daemon of Python workers, with what tasks need imported before the first is forked: a worker begins at once.

Each session has a daemon of its own, and without this each of its workers imports Arrow, the drivers and the readings
anew. A server is told of it by `spark.python.daemon.module`; one that is not works as well, and begins later.
"""

from __future__ import annotations

from pyspark import worker  # noqa: F401  # imported for the forks, as all that follows
from pyspark.daemon import manager

import workers.evidence.ranges  # noqa: F401
from workers.connectors.registry import connectors_import

if __name__ == "__main__":
    connectors_import()
    manager()
