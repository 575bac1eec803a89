"""The ports that children serve their metrics on: the parent opens them, so that another child has the same one."""

import importlib.util
import logging
import socket
from collections.abc import Sequence
from typing import Final, cast

from windlass.core.errors import InvalidValue, MissingExtra

logger = logging.getLogger("windlass")

LAST_PORT: Final = 65_535


def open_ports(address: object, count: int) -> Sequence[socket.socket]:
    """Open a port for each of `count` children, one after the other from that of the setting `metrics`, and say so.

    Port 0 takes any that are free. Raises `OSError` that says which port cannot be opened; then none is.
    """
    if address is None:
        return ()
    if importlib.util.find_spec("prometheus_client") is None:
        what = "--metrics"
        raise MissingExtra(what, "metrics")
    host, first = cast("tuple[str, int]", address)
    if first + count - 1 > LAST_PORT:
        message = (
            f"metrics of {count:,} processes need as many ports from {first} on, and the last one is {LAST_PORT:,}"
        )
        raise InvalidValue(message)
    ports: list[socket.socket] = []
    try:
        # one by one, so that those that were opened are known when one cannot be
        ports.extend(_open(host, first + number if first else 0) for number in range(count))
    except OSError:
        for port in ports:
            port.close()
        raise
    for number, port in enumerate(ports, 1):
        of = "" if count == 1 else f" of process {number}"
        logger.info("metrics%s: http://%s/metrics", of, _shown(port))
    return ports


def _open(host: str, port: int) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        # the address is said already
        why = (error.strerror or str(error)).partition(" (while")[0]
        message = f"cannot serve metrics on {host}:{port}: {why}; give another port by --metrics"
        raise OSError(message) from error


def _shown(port: socket.socket) -> str:
    host, number = port.getsockname()[:2]
    return f"[{host}]:{number}" if ":" in host else f"{host}:{number}"
