"""The Cluster of a test run: three masters for all tests, a prefix for each. It is started, and ends with the run."""

from collections.abc import Generator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

from tests.redis.forming import CLUSTERED, MASTERS, form
from tests.redis.keys import new_prefix, remove_keys, with_options
from tests.redis.server import start
from tests.servers import run


@contextmanager
def new_cluster_url(*, spread: bool = False) -> Generator[str]:
    """Give the URL of a store that is not there yet, with `spread` over all masters; see `server.new_url`."""
    url = with_options(cluster(), f"prefix={new_prefix()}{'&spread=queues' if spread else ''}")
    try:
        yield url
    finally:
        remove_keys(url)


@cache
def cluster() -> str:
    """Return the URL of the run's Cluster, without a prefix; it is started when nobody has asked before."""
    ports = run.shared("redis-cluster", _start).split()
    return f"redis+cluster://{','.join(f'127.0.0.1:{port}' for port in ports)}"


def _start(folder: Path) -> str:
    # each lives in a folder that goes with it, the first one in that of the Cluster
    begin = partial(start, conf=CLUSTERED)
    others = [run.shared(f"redis-cluster-{each}", begin) for each in range(2, MASTERS + 1)]
    ports = [begin(folder), *others]
    form([int(port) for port in ports])
    return " ".join(ports)
