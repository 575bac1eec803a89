"""The headers of a request that decide whether it is let in: its host, the site that it comes from, and its body.

Requests that a page of another site lets a browser send are refused: they carry what its user may do, not the page.
Browsers say where a request comes from by `Sec-Fetch-Site`, and older ones by `Origin`. Who sends neither is no
browser, and has nothing that a page could make use of, unless it sends a cookie.
"""

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Final

from windlass.core.errors import InvalidValue
from windlass.http.auth import LOOPBACK
from windlass.http.refusal import Refusal

_DECIDING: Final[Mapping[bytes, str]] = {
    name.encode(): name
    for name in (
        "authorization",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "host",
        "origin",
        "sec-fetch-mode",
        "sec-fetch-site",
        "transfer-encoding",
    )
}


def deciding_headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers that decide, by their names in lower case.

    One that is there twice is refused: who reads the first and who reads the last would decide about two requests.
    """
    found: dict[str, str] = {}
    for raw_name, value in raw:
        name = _DECIDING.get(raw_name)
        if name is None:
            continue
        text = value.decode("latin-1")
        if name not in found:
            found[name] = text
        elif name == "cookie":
            # the one that may be sent in pieces
            found[name] += f"; {text}"
        else:
            message = f"the header {name} is there twice: send it once"
            raise Refusal(400, "bad_request", message)
    return found


def announces_body(headers: Mapping[str, str]) -> bool:
    """Whether a request says that a body follows."""
    return headers.get("content-length", "0").strip() not in ("0", "") or "transfer-encoding" in headers


SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""

_OF_OUR_OWN: Final = ("same-origin", "none")


def check_site(method: str, headers: Mapping[str, str]) -> None:
    """Refuse what comes from another site: all that could change something, and all but links to follow."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if method in SAFE:
        if site is not None and site not in _OF_OUR_OWN and headers.get("sec-fetch-mode") != "navigate":
            raise _refusal("it is asked for by a page of another site")
        return
    if site is not None and site not in _OF_OUR_OWN:
        raise _refusal("it is sent by a page of another site")
    if origin is not None and not _same(origin, headers.get("host", "")):
        raise _refusal("its Origin is not this host")
    if _by_cookie(headers):
        if site is None and origin is None:
            raise _refusal("it has a cookie, and neither Sec-Fetch-Site nor Origin")
        if announces_body(headers) and not is_json(headers):
            raise _refusal("it has a cookie, and a body as forms send it")


def is_json(headers: Mapping[str, str]) -> bool:
    """Whether the body is said to be JSON, which no form of a page can send."""
    return headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"


def _by_cookie(headers: Mapping[str, str]) -> bool:
    return "cookie" in headers and "authorization" not in headers


def _same(origin: str, host: str) -> bool:
    # not the scheme: a proxy may end TLS in front of this process
    scheme, mark, name = origin.lower().partition("://")
    return scheme in ("http", "https") and bool(mark) and name == host.lower()


def _refusal(why: str) -> Refusal:
    message = f"this request is refused because {why}: send it from a page of this host, or with a token and no cookie"
    return Refusal(403, "cross_site", message)


_HOST: Final = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9_.-]{1,253})(?::[0-9]{1,5})?", re.ASCII)
EVERYWHERE: Final = ("0.0.0.0", "::", "")  # noqa: S104 - what is no name
"""What is bound to for all addresses, and is the name of none."""


class Hosts:
    """The names that a header `Host` may have: those of the loopback, the address that is bound, and others by leave.

    A page of another site whose name leads to this process is not one of them.

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
