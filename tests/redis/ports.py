"""Ports for servers that are stopped and started again, and that speak to each other on a second port."""

import random
import socket
from typing import Final

BUS: Final = 10_000
"""How far above its port a server of a Cluster listens to the others."""
# Both ports lie below those that a system gives to outgoing connections: none is taken while its server is stopped.
PORTS: Final = range(10_000, 32_768 - BUS)
_given: Final[set[int]] = set()
# not the seeded one, which is the same in every process of a run
_chance: Final = random.SystemRandom()


def free_port() -> int:
    """Return a port that nobody listened on a moment ago, nor on its bus port, and that was not returned before."""
    while True:
        port = _chance.choice(PORTS)
        if port not in _given and _is_free(port) and _is_free(port + BUS):
            _given.add(port)
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as one:
        try:
            one.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
