"""Moto, an S3 server that others wrote, in a thread of the test's process: what ours is held against."""

import logging
from collections.abc import Generator
from contextlib import contextmanager

from moto.server import ThreadedMotoServer

from tests.slatedb.asking import ask
from tests.slatedb.s3 import BUCKET


@contextmanager
def moto() -> Generator[str]:
    """Give the endpoint of a server that has the one empty bucket."""
    log = logging.getLogger("werkzeug")
    level = log.level
    # it tells of each call
    log.setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        assert ask(endpoint, "PUT", f"/{BUCKET}").status == 200
        yield endpoint
    finally:
        server.stop()
        log.setLevel(level)
