"""One trivial task for a real worker: a Spark Connect job whose answer goes where the test waits for it."""

from __future__ import annotations

import json
import os

import redis
from celery import shared_task

from workers.faults import Point, crash_point
from workers.spark.session import session_get, session_of


@shared_task(name="tests.echo")
def echo(count: int, answer_url: str, answer_key: str) -> None:
    crash_point(Point.INTENT_TAKEN)
    session = session_get()
    [row] = session.range(count).selectExpr("sum(id) AS total").collect()
    answer = {"total": row.total, "session": session_of(session), "pid": os.getpid()}
    with redis.Redis.from_url(answer_url) as connection:
        connection.rpush(answer_key, json.dumps(answer))
