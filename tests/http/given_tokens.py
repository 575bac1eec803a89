"""Tokens for tests."""

from collections.abc import Iterable
from datetime import UTC, datetime

from windlass.api.roles import Role
from windlass.http.tokens import KnownToken, find_token, hash_of, new_secret

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECRET = "wl_" + "a" * 43


def a_token(
    secret: str = SECRET,
    *,
    name: str = "ci",
    roles: Iterable[Role] = (Role.PRODUCE,),
    queues: Iterable[str] | None = None,
    rate: float | None = None,
) -> KnownToken:
    kept = None if queues is None else frozenset(queues)
    return KnownToken(name, frozenset(roles), hash_of(secret), kept, rate, NOON)


class TokenList:
    """Tokens that are changed by a test."""

    def __init__(self, *tokens: KnownToken) -> None:
        self.tokens = list(tokens)

    def find(self, secret: str) -> KnownToken | None:
        return find_token(secret, self.tokens)

    def still_known(self, sha256: str) -> KnownToken | None:
        return next((each for each in self.tokens if each.sha256 == sha256), None)


def bearer(secret: str = SECRET) -> tuple[str, str]:
    return ("authorization", f"Bearer {secret}")


def wrong_secrets(count: int) -> list[str]:
    return [new_secret() for _ in range(count)]
