"""An app in front of a real store, asked without a server, with a token for each role."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import windlass
from tests.http.asgi import Reply, Sender, ask
from tests.http.given_tokens import TokenList, a_token, bearer
from windlass.api.operations import REQUEST, ROOT, SERVING
from windlass.api.roles import Role
from windlass.client.client import Client
from windlass.core.topics import Hub
from windlass.http.app import Api
from windlass.http.auth import TokenAuth
from windlass.http.sessions import Sessions

LIMITED = "limited"


def secret_of(who: str) -> str:
    return "wl_" + who.ljust(43, "x")


async def until(true: Callable[[], bool]) -> None:
    """Return when something is true that nobody signals: other tasks of this loop go on meanwhile."""
    while not true():  # noqa: ASYNC110 - what is looked at here has no event
        await asyncio.sleep(0)


class GivenApp:
    """An app, and who asks it: by the name of a role, or `limited`, who may do all on the queue `mine`."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.tokens = TokenList(
            *(a_token(secret_of(role), name=role, roles=[role]) for role in Role),
            a_token(secret_of(LIMITED), name=LIMITED, roles=list(Role), queues=["mine"]),
        )
        sessions = Sessions(self.tokens, secure=False, clock=client.clock)
        self.api = Api(client, auth=TokenAuth(self.tokens, sessions), sessions=sessions)

    @property
    def hub(self) -> Hub:
        """Who listens to the store."""
        found: Hub = vars(self.client.store)["_hub"]
        return found

    async def listened(self, *topics: str) -> None:
        """Return when somebody listens to these topics, and has looked once."""
        await until(lambda: {*topics} <= {*self.hub.topics()})
        for _ in range(20):
            await asyncio.sleep(0)

    async def get(self, path: str, *, who: str | None = Role.ADMIN, sender: Sender | None = None) -> Reply:
        return await ask(self.api, "GET", ROOT + path, headers=_headers(who), sender=sender)

    async def post(
        self,
        path: str,
        json: object,
        *,
        who: str | None = Role.ADMIN,
        request: str | None = None,
        serving: str | None = None,
    ) -> Reply:
        named = [(REQUEST, request)] if request is not None else []
        named += [(SERVING, serving)] if serving is not None else []
        return await ask(self.api, "POST", ROOT + path, headers=[*_headers(who), *named], json=json)

    async def done(self, path: str, json: object, *, who: str = Role.ADMIN, request: str | None = None) -> Any:  # noqa: ANN401 - the JSON edge
        """Return what a call that is done tells."""
        reply = await self.post(path, json, who=who, request=request)
        assert reply.status == 200, reply.body
        return reply.document

    async def enqueued(self, *queues: str) -> list[str]:
        """Put a job into each of these queues; return the ids."""
        told = await self.done(
            "/jobs", {"jobs": [{"queue": queue, "payload": {"n": n}} for n, queue in enumerate(queues)]}
        )
        return [each["id"] for each in told["jobs"]]

    async def claimed(self, *queues: str) -> list[Any]:
        """Claim one job of each of these queues, which are there."""
        await self.enqueued(*queues)
        found: list[Any] = (await self.done("/claims", {"queues": queues, "limit": len(queues)}))["claims"]
        assert len(found) == len(queues)
        return found


def _headers(who: str | None) -> list[tuple[str, str]]:
    return [] if who is None else [bearer(secret_of(who))]


@asynccontextmanager
async def an_app(url: str = "memory://", **settings: Any) -> AsyncGenerator[GivenApp]:  # noqa: ANN401 - as connect's
    async with windlass.connect(url, **settings) as client:
        given = GivenApp(client)
        try:
            yield given
        finally:
            await given.api.close()
