"""Who is let into an app that is mounted in another one, by what its maker says of that."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from windlass.core.clock import Clock
from windlass.core.errors import InvalidValue
from windlass.http.auth import Auth, NoAuth, RefuseAll, TokenAuth
from windlass.http.request_headers import Hosts
from windlass.http.sessions import Sessions
from windlass.http.token_file import TokenFile

logger = logging.getLogger("windlass.http")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrance:
    """Who is known, who has logged in, and by which names an app may be called."""

    auth: Auth
    sessions: Sessions | None
    hosts: Hosts


def entrance(
    *,
    auth: Auth | None,
    tokens: str | Path | None,
    https: bool,
    insecure: bool,
    allowed_hosts: Iterable[str],
    clock: Clock,
) -> Entrance:
    """Return who is let in: by an `auth` of the maker's own, by the tokens of a file, or, if it is said, everybody.

    Nobody is, where nothing is said. Raises `InvalidValue` for two answers at once, and for a file that cannot be used.
    """
    if isinstance(allowed_hosts, str):
        message = f'allowed_hosts is a list of names: allowed_hosts=["{allowed_hosts}"]'
        raise InvalidValue(message)
    if sum((auth is not None, tokens is not None, insecure)) > 1:
        message = "auth=, tokens= and insecure=True are three answers to who is let in: give one of them"
        raise InvalidValue(message)
    hosts = Hosts(allowed=allowed_hosts)
    if tokens is not None:
        known = TokenFile(Path(tokens))
        sessions = Sessions(known, secure=https, clock=clock)
        return Entrance(auth=TokenAuth(known, sessions), sessions=sessions, hosts=hosts)
    if insecure:
        logger.warning("this app lets everybody do everything: give it auth= or tokens=, and leave insecure away")
        auth = NoAuth()
    if auth is None:
        logger.warning("this app knows nobody and refuses everybody: give it auth= or tokens=, or say insecure=True")
        auth = RefuseAll()
    return Entrance(auth=auth, sessions=None, hosts=hosts)
