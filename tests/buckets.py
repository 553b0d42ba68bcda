"""A bucket as S3 has them (moto's server, in a process of this one), and servers that answer nothing but an error."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

BUCKET = "evidence"
KEYS = "access_key=env:FENCEPOST_END_S3_KEY&secret_key=env:FENCEPOST_END_S3_SECRET"
ENVIRONMENT = {"FENCEPOST_END_S3_KEY": "a-key", "FENCEPOST_END_S3_SECRET": "a-secret-of-the-bucket"}


def url_of(port: int, prefix: str = "run") -> str:
    return f"s3://{BUCKET}/{prefix}?region=us-east-1&scheme=http&endpoint_override=127.0.0.1:{port}&{KEYS}"


@dataclass
class Bucket:
    """`url`: as FENCEPOST_EVIDENCE_URL takes it. `client`: what a person would look at it with."""

    url: str
    client: Any

    def names(self, below: str = "") -> list[str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"run/{below}")
        keys = (one["Key"] for page in pages for one in page.get("Contents", ()))
        return sorted(key for key in keys if not key.endswith("/"))  # Arrow's mark of a folder, of no bytes

    def put(self, name: str, body: bytes) -> None:
        self.client.put_object(Bucket=BUCKET, Key=name, Body=body)

    def get(self, name: str) -> bytes:
        return bytes(self.client.get_object(Bucket=BUCKET, Key=name)["Body"].read())

    def delete(self, name: str) -> None:
        self.client.delete_object(Bucket=BUCKET, Key=name)


@contextmanager
def bucket_served() -> Iterator[Bucket]:
    """Moto's server with an empty bucket."""
    import logging

    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        _, port = server.get_host_and_port()
        given = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
        client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}", **given)
        client.create_bucket(Bucket=BUCKET)
        served = Bucket(url_of(port), client)
        for name in served.names():  # moto's buckets are the process's: an earlier test's
            served.delete(name)
        yield served
    finally:
        server.stop()


@contextmanager
def refusing(status: int, code: str) -> Iterator[str]:
    """The address of a bucket whose server answers every request with this error, as S3 spells it."""

    class Refusing(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = answer

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield url_of(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
