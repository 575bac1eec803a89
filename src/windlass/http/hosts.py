"""By which names this process may be called: a page of somebody else's, whose name leads here, is not one of them."""

import ipaddress
import re
from collections.abc import Iterable
from typing import Final

from windlass.core.errors import InvalidValue
from windlass.http.auth import LOOPBACK
from windlass.http.refusal import Refusal

_HOST: Final = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9_.-]{1,253})(?::[0-9]{1,5})?", re.ASCII)
EVERYWHERE: Final = ("0.0.0.0", "::", "")  # noqa: S104 - what is no name
"""What is bound to for all addresses, and is the name of none."""


class Hosts:
    """The names that a header `Host` may have: those of the loopback, the address that is bound, and others by leave.

    They are compared as they are, in lower case and without the port. No other header is looked at.
    """

    def __init__(self, bind: str = "", allowed: Iterable[str] = ()) -> None:
        bound = [] if bind.strip("[]") in EVERYWHERE else [bind]
        self._names: Final = frozenset(map(_as_sent, [*LOOPBACK, *bound, *allowed]))
        # what was let in before needs no second look; only names of ours with some port get here
        self._seen: set[str] = set()

    def check(self, host: str | None) -> None:
        """Refuse a request that was meant for another host."""
        if host in self._seen:
            return
        found = None if host is None else _HOST.fullmatch(host.lower())
        if host is None or found is None:
            message = "the header Host is missing or is no name: send the name that this process is called by"
            raise Refusal(421, "misdirected", message)
        if found[1] not in self._names:
            name = found[1].strip("[]")
            message = (
                f"{found[1]} is no name of this process: start it with --allow-host {name}, or give "
                f'allowed_hosts=["{name}"] where it is mounted'
            )
            raise Refusal(421, "misdirected", message)
        if len(self._seen) < len(self._names) * 4:
            self._seen.add(host)


def _as_sent(name: str) -> str:
    """Return a name as a browser writes it in `Host`, without the port."""
    plain = name.strip().lower()
    try:
        address = ipaddress.ip_address(plain.strip("[]"))
    except ValueError:
        found = _HOST.fullmatch(plain)
        if found is None or found[1] != plain:
            message = (
                f"{name[:100]!r} is no name of a host: give it without scheme, port and path, such as jobs.example.com"
            )
            raise InvalidValue(message) from None
        return plain
    return f"[{address}]" if address.version == 6 else str(address)  # noqa: PLR2004 - the version's name
