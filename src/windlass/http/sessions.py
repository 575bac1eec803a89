"""Sessions of browsers: a token is given once, at the login, and a cookie stands for it afterwards."""

import secrets
from dataclasses import dataclass
from typing import Final

from windlass.core.clock import Clock
from windlass.http.tokens import RANDOM_BYTES, KnownToken, Tokens, hash_of
from windlass.system import SystemClock

LIFE: Final = 12 * 60 * 60
"""Seconds; a session is not made longer by its use."""
MOST_SESSIONS: Final = 1_000


@dataclass(frozen=True, slots=True)
class _Session:
    token: str
    """The hash of the token that it was made from."""
    ends_at: float


class Sessions:
    """The sessions of one process, which end with it, after twelve hours, at a logout, and when their token is gone.

    Of more than a thousand the oldest ends. Only the hash of a session's id is kept.
    """

    def __init__(self, tokens: Tokens, *, secure: bool, clock: Clock | None = None) -> None:
        """Make sessions; `secure` says that browsers come by TLS, also where a proxy ends it."""
        self._tokens = tokens
        self._secure = secure
        self._clock = clock or SystemClock()
        self._kept: dict[str, _Session] = {}
        # a browser takes this prefix only from the very host, by TLS, and for all of its paths
        self.cookie: Final = "__Host-windlass" if secure else "windlass"

    def __len__(self) -> int:
        return len(self._kept)

    def begin(self, secret: str, cookies: str = "") -> str | None:
        """Return the value of `Set-Cookie` for whoever has this token; None when it is wrong.

        The id is new each time, and the session that `cookies` had before ends: an id that somebody else has put into
        a browser is worth nothing after the login.
        """
        token = self._tokens.find(secret)
        if token is None:
            return None
        self.end(cookies)
        self._make_room()
        made = secrets.token_urlsafe(RANDOM_BYTES)
        self._kept[hash_of(made)] = _Session(token.sha256, self._clock.monotonic() + LIFE)
        return self._written(made, LIFE)

    def find(self, cookies: str) -> KnownToken | None:
        """Return the token, as it is known by now, of the session in the value of a header `Cookie`."""
        key = self._key(cookies)
        session = None if key is None else self._kept.get(key)
        if key is None or session is None:
            return None
        token = self._tokens.still_known(session.token) if self._clock.monotonic() < session.ends_at else None
        if token is None:
            del self._kept[key]
        return token

    def end(self, cookies: str) -> str:
        """End the session in the value of a header `Cookie`, if there is one; return a `Set-Cookie` that forgets it."""
        key = self._key(cookies)
        if key is not None:
            self._kept.pop(key, None)
        return self._written("", 0)

    def _make_room(self) -> None:
        now = self._clock.monotonic()
        # all live equally long, so that the first made are the first to end
        for key, session in list(self._kept.items()):
            if session.ends_at > now and len(self._kept) < MOST_SESSIONS:
                break
            del self._kept[key]

    def _key(self, cookies: str) -> str | None:
        values = [value for name, value in _pairs(cookies) if name == self.cookie]
        # one of two was put there by somebody else, and nobody can tell which
        return hash_of(values[0]) if len(values) == 1 else None

    def _written(self, value: str, life: int) -> str:
        secure = "; Secure" if self._secure else ""
        return f"{self.cookie}={value}; Path=/; Max-Age={life}; HttpOnly; SameSite=Strict{secure}"


def _pairs(cookies: str) -> list[tuple[str, str]]:
    parted = (each.partition("=") for each in cookies.split(";"))
    return [(name.strip(), value.strip()) for name, _, value in parted]
