"""Who somebody is: an identity out of the headers of a request, or nobody; and whether it may do what it asks for."""

import ipaddress
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from starlette.types import Scope

from windlass.api.roles import Role
from windlass.core.errors import InvalidValue
from windlass.http.refusal import forbidden, unauthorized
from windlass.http.sessions import Sessions
from windlass.http.tokens import KnownToken, Tokens

logger = logging.getLogger("windlass.http")

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""The names of this machine that nobody else can reach it by."""

_SCOPE_KEY: Final = "windlass.identity"
_SCHEME: Final = "bearer "


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks, and what they may do."""

    name: str
    roles: frozenset[Role]
    queues: frozenset[str] | None = None
    """The queues that they are limited to; None for all."""
    rate: float | None = None
    """Requests a second; None for as many as can be served."""


LOCAL: Final = Identity("local", frozenset({Role.ADMIN}))
"""Everybody, where nobody is asked who they are."""


class Auth(Protocol):
    """Tells who somebody is."""

    def identify(self, headers: Mapping[str, str]) -> Identity | None:
        """Return who sent these headers, whose names are in lower case; None for nobody who is known."""
        ...


class RefuseAll:
    """Knows nobody: what an app has that was told nothing else."""

    def identify(self, headers: Mapping[str, str]) -> Identity | None:
        """Know nobody."""
        del headers
        return None


class NoAuth:
    """Takes everybody for the administrator: for a loopback address, or where a user has said that it is insecure."""

    def __init__(self, identity: Identity = LOCAL) -> None:
        """Take everybody for `identity`, where that is less than the administrator."""
        self._identity = identity

    def identify(self, headers: Mapping[str, str]) -> Identity | None:
        """Know everybody as the same."""
        del headers
        return self._identity


class TokenAuth:
    """Knows whoever has a token, by the header `Authorization: Bearer` or, in a browser, by a session.

    A header that is wrong is not made up for by a cookie that is right.
    """

    def __init__(self, tokens: Tokens, sessions: Sessions | None = None) -> None:
        self._tokens = tokens
        self._sessions = sessions

    def identify(self, headers: Mapping[str, str]) -> Identity | None:
        """Return whose token or session it is."""
        given = headers.get("authorization")
        if given is not None:
            secret = bearer_of(given)
            return None if secret is None else _identity_of(self._tokens.find(secret))
        cookies = headers.get("cookie")
        if self._sessions is None or cookies is None:
            return None
        return _identity_of(self._sessions.find(cookies))


def bearer_of(given: str) -> str | None:
    """Return the token in the value of a header `Authorization`."""
    if given[: len(_SCHEME)].lower() != _SCHEME:
        return None
    return given[len(_SCHEME) :].strip(" ") or None


def auth_for(bind: str, *, tokens: Tokens | None, insecure: bool = False, sessions: Sessions | None = None) -> Auth:
    """Return who is let in at the address `bind`: those with a token, or all on a loopback address without tokens.

    Any other address without tokens is refused, unless the user says `insecure`, of which each start warns.
    """
    if tokens is not None:
        return TokenAuth(tokens, sessions)
    if insecure:
        logger.warning("everybody who reaches %s may do everything: make tokens, and leave --insecure away", bind)
        return NoAuth()
    if is_loopback(bind):
        return NoAuth()
    message = (
        f"{bind} can be reached from other machines, and no tokens are named: make one by `windlass token new` and "
        "give --tokens FILE, or bind to 127.0.0.1; --insecure lets everybody in"
    )
    raise InvalidValue(message)


def is_loopback(bind: str) -> bool:
    """Whether only this machine can reach what is bound to this address."""
    try:
        return ipaddress.ip_address(bind.strip("[]")).is_loopback
    except ValueError:
        # a name could lead anywhere, but for the one that is kept for this machine
        return bind.lower() == "localhost"


def set_identity(scope: Scope, identity: Identity) -> None:
    """Write down who sent a request."""
    scope[_SCOPE_KEY] = identity


def is_identified(scope: Mapping[str, object]) -> bool:
    """Whether it is known who sent a request."""
    return _SCOPE_KEY in scope


def identity_of(scope: Scope) -> Identity:
    """Return who sent a request; one that was let in by nobody is refused."""
    found = scope.get(_SCOPE_KEY)
    if not isinstance(found, Identity):
        raise unauthorized()
    return found


def _identity_of(token: KnownToken | None) -> Identity | None:
    return None if token is None else Identity(token.name, token.roles, token.queues, token.rate)


def check_roles(identity: Identity, roles: Collection[Role]) -> None:
    """Refuse an operation that none of the identity's roles may call; an administrator may call each."""
    if Role.ADMIN in identity.roles or not identity.roles.isdisjoint(roles):
        return
    needed = _listed([*roles, Role.ADMIN] if Role.ADMIN not in roles else roles)
    message = (
        f"{identity.name} has the role {_listed(identity.roles)}, and this needs one of {needed}: use another token"
    )
    raise forbidden(message)


def reaches(identity: Identity, queue: str) -> bool:
    """Whether the identity may know of what is in this queue."""
    return identity.queues is None or queue in identity.queues


def check_queues(identity: Identity, queues: Collection[str]) -> None:
    """Refuse an operation on queues of which one is out of reach, in the same words whether it is there or not."""
    for queue in queues:
        if not reaches(identity, queue):
            message = f"{identity.name} is limited to other queues than {queue[:200]}: use another token"
            raise forbidden(message)


def queues_in_reach(identity: Identity, wanted: Collection[str] | None) -> Collection[str] | None:
    """Return the queues that an operation is about: those that are wanted, or all in reach when none are named.

    None means all that there are. One that is out of reach is refused.
    """
    if wanted is None:
        return identity.queues
    check_queues(identity, wanted)
    return wanted


def check_unlimited(identity: Identity) -> None:
    """Refuse an operation that is about no single queue to whoever is limited to some."""
    if identity.queues is not None:
        message = f"{identity.name} is limited to some queues, and this is about all of them: use another token"
        raise forbidden(message)


def _listed(roles: Collection[Role]) -> str:
    return ", ".join(role.value for role in Role if role in roles)
