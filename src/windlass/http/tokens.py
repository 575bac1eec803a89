"""Tokens: what is given to somebody once, and what is kept of it."""

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from hmac import compare_digest
from typing import Final, Protocol

from windlass.api.roles import Role

PREFIX: Final = "wl_"
"""How each token begins, so that people and programs that look for leaked secrets know one when they see it."""
RANDOM_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class KnownToken:
    """What is kept of a token: whose it is, what it may do, and the hash that it is known by."""

    name: str
    roles: frozenset[Role]
    sha256: str
    queues: frozenset[str] | None = None
    """The queues that it is limited to; None for all."""
    rate: float | None = None
    """Requests a second; None for as many as can be served."""
    created_at: datetime | None = None


class Tokens(Protocol):
    """Where tokens are looked up."""

    def find(self, secret: str) -> KnownToken | None:
        """Return what is known of the token that somebody presents; takes the same time whichever it is."""
        ...

    def still_known(self, sha256: str) -> KnownToken | None:
        """Return what is known by now of a token that was found before; None when it is gone."""
        ...


def new_secret() -> str:
    """Return a new token of 256 random bits: 46 characters that need no quoting anywhere."""
    return PREFIX + secrets.token_urlsafe(RANDOM_BYTES)


def hash_of(secret: str) -> str:
    """Return what is kept of a secret; one of 256 random bits needs no salt and no slow hash."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def find_token(secret: str, known: Iterable[KnownToken]) -> KnownToken | None:
    """Return the token whose hash is that of `secret`; all are compared, so that time tells nothing."""
    wanted = hash_of(secret)
    found: KnownToken | None = None
    for each in known:
        if compare_digest(each.sha256, wanted):
            found = each
    return found
