"""One spelling for a host that has several."""

from typing import Final

_HERE: Final = "127.0.0.1"


def spelt_host(host: str) -> str:
    """Return a host, or the path of a socket, as all spellings of it are; nobody is asked for an address."""
    if host.startswith("/"):
        return host
    name = host.lower().removesuffix(".")
    return _HERE if name == "localhost" else name
