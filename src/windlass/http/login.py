"""The session of a browser: begun with a token, ended at the logout."""

from datetime import timedelta
from typing import Annotated, Final

from msgspec import Meta
from starlette.types import Receive, Scope, Send

from windlass.api.about import SessionTold
from windlass.api.calls import Nothing
from windlass.api.operations import ROOT
from windlass.api.roles import Role
from windlass.api.shape import Asked
from windlass.core.clock import Clock
from windlass.http.asked import body_reader
from windlass.http.auth import Auth
from windlass.http.body import Gone
from windlass.http.endpoint import whole
from windlass.http.refusal import Refusal, too_many_requests, unauthorized
from windlass.http.reply import Reply, encode
from windlass.http.request_headers import deciding_headers
from windlass.http.sessions import LIFE, Sessions
from windlass.http.throttle import WrongTokens

SESSION: Final = f"{ROOT}/session"


class LoginAsked(Asked, kw_only=True):
    """The token that the session is to stand for."""

    token: Annotated[str, Meta(min_length=1, max_length=500)]


class Login:
    """Begins a session for whoever has a token. The guard lets everybody come here, so wrong tokens are counted."""

    def __init__(self, auth: Auth, sessions: Sessions | None, wrong_tokens: WrongTokens, clock: Clock) -> None:
        self._auth = auth
        self._sessions = sessions
        self._wrong_tokens = wrong_tokens
        self._clock = clock
        self._read = body_reader(LoginAsked)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the cookie of a new session; an older one of this browser ends."""
        try:
            sessions = _needed(self._sessions)
            asked = self._read(await whole(receive))
        except Gone:
            return
        identity = self._auth.identify({"authorization": f"Bearer {asked.token}"})
        cookie = sessions.begin(asked.token, _cookies(scope))
        if identity is None or cookie is None:
            raise self._wrong(scope)
        told = SessionTold(
            name=identity.name,
            roles=[role for role in Role if role in identity.roles],
            expires_at=self._clock.now() + timedelta(seconds=LIFE),
        )
        await Reply(200, encode(told), {"Set-Cookie": cookie}).send(send)

    def _wrong(self, scope: Scope) -> Refusal:
        client = scope.get("client")
        wait = self._wrong_tokens.failed(str(client[0]) if client else "unknown")
        return too_many_requests("too many wrong tokens came from your address", wait) if wait else unauthorized()


class Logout:
    """Ends the session of a browser, if it has one."""

    def __init__(self, sessions: Sessions | None) -> None:
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a cookie that forgets the session."""
        del receive
        await Reply(200, encode(Nothing()), {"Set-Cookie": _needed(self._sessions).end(_cookies(scope))}).send(send)


def _needed(sessions: Sessions | None) -> Sessions:
    if sessions is None:
        message = "nobody logs in here: send a token with each request"
        raise Refusal(404, "not_found", message)
    return sessions


def _cookies(scope: Scope) -> str:
    return deciding_headers(scope["headers"]).get("cookie", "")
