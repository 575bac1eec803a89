"""A dashboard on a real store and a real port, with what a shop has in its queues."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import ASGIApp

from tests.http.dashboard.watching import CountedStore
from tests.http.given_app import LIMITED, secret_of
from tests.http.given_tokens import TokenList, a_token
from windlass.api.roles import Role
from windlass.client.client import Client
from windlass.codec import JSON
from windlass.connect import open_store
from windlass.core.job import Claim, Failure, Job, NewJob, Note, Progress
from windlass.core.looks import ServerRecord
from windlass.core.requests import ClaimRequest, Settlement
from windlass.core.settings import QueueSettings, resolve
from windlass.core.store import Store
from windlass.core.verdict import ToDead, ToSucceeded, Verdict
from windlass.http.auth import Auth, NoAuth, TokenAuth
from windlass.http.dashboard.app import Dashboard
from windlass.http.listening import Listening
from windlass.http.sessions import Sessions
from windlass.system import SystemClock, SystemRng, TaskSpawn

HOST = "127.0.0.1"
TRACE = 'Traceback (most recent call last):\n  File "bank.py", line 7, in charge\n    raise Declined(card)\n'


class Shop:
    """What a test does behind the back of a browser."""

    def __init__(self, client: Client, store: CountedStore, tokens: TokenList, url: str) -> None:
        self.client = client
        self.url = url
        self.tokens = tokens
        self._counted = store

    @property
    def store(self) -> Store:
        return self.client.store

    def set_away(self, *, away: bool) -> None:
        """Let the store not answer."""
        self._counted.away = away

    async def enqueue(self, count: int = 1, *, queue: str = "mail", kind: str = "mail.send") -> list[str]:
        jobs = [await self.client.enqueue(queue, {"to": f"customer {n}"}, kind=kind) for n in range(count)]
        return [job.id for job in jobs]

    async def claimed(self, count: int = 1, *, queue: str = "mail", kind: str = "mail.send") -> list[Claim]:
        """Enqueue jobs and claim them."""
        await self.enqueue(count, queue=queue, kind=kind)
        return await self.claim(queue, count)

    async def claim(self, queue: str, count: int = 1) -> list[Claim]:
        """Claim jobs that wait."""
        claims = (await self.store.claim(ClaimRequest((queue,), count, timedelta(hours=1), worker="worker-1"))).jobs
        assert len(claims) == count
        return claims

    async def settle(self, claims: Sequence[Claim], verdict: Verdict) -> None:
        await self.store.settle([Settlement(claim.job.id, claim.token, verdict) for claim in claims])

    async def dead(self, count: int = 1, *, error: str = "Declined", queue: str = "bank") -> list[str]:
        """Let jobs die of an error."""
        claims = await self.claimed(count, queue=queue, kind="bank.charge")
        await self.settle(claims, ToDead(Failure("the card was declined", error, TRACE)))
        return [claim.job.id for claim in claims]

    async def note(self, claim: Claim, text: str, *, done: float = 1, of: float = 10) -> None:
        """Let a running job tell how far it is, and write a line."""
        told = Note(claim.job.id, claim.token, Progress(done, of, text), [("info", text)])
        assert await self.store.note([told]) == [True]

    async def schedule(self, id: str) -> None:
        await self.client.schedules.put(id, "0 3 * * *", NewJob("mail", {}, kind="mail.send"))

    async def job(self, id: str) -> Job:
        found = await self.client.get(id)
        assert found is not None
        return found

    async def stock(self) -> str:
        """Put something of everything there; return the id of a job that is dead."""
        await self.enqueue(3)
        await self.settle(await self.claimed(2), ToSucceeded(b'{"sent": true}', "json"))
        await self.dead(2, error="Unreachable")
        [dead] = await self.dead(1)
        [running] = await self.claimed(1, queue="images", kind="images.shrink")
        await self.note(running, "the first picture")
        await self.schedule("nightly")
        now = self.client.clock.now()
        record = ServerRecord(
            "worker-1", "worker-1", "host-1", 7, "1.0", now, now, ("mail", "images"), ("mail.send",), running=1
        )
        await self.store.beat(record)
        await self.client.pause("images")
        return dead


@asynccontextmanager
async def a_shop(folder: Path, *, insecure: bool = False, below: str = "") -> AsyncGenerator[Shop]:
    """Serve a dashboard; `insecure` needs no login, as on the loopback, `below` is the path that it is mounted at."""
    clock, rng = SystemClock(), SystemRng()
    counted = CountedStore(open_store(f"sqlite:///{folder}/jobs.db?synchronous=normal", clock=clock, rng=rng))
    store: Any = counted
    settings = resolve(QueueSettings(), None)
    client = Client(
        store, settings, codec=JSON, clock=clock, rng=rng, spawn=TaskSpawn(), poll_interval=1.0, worker="dashboard"
    )
    tokens = TokenList(
        *(a_token(secret_of(role), name=role, roles=[role]) for role in Role),
        a_token(secret_of(LIMITED), name=LIMITED, roles=list(Role), queues=["mail"]),
    )
    sessions = None if insecure else Sessions(tokens, secure=False, clock=clock)
    auth: Auth = NoAuth() if insecure else TokenAuth(tokens, sessions)
    app = Dashboard(client, auth=auth, sessions=sessions, store="sqlite:///jobs.db")
    async with client:
        whole: ASGIApp = Starlette(routes=[Mount(below, app)]) if below else app
        listening = Listening(whole, HOST, 0, stopping=app.stop_waiting)
        await listening.start()
        try:
            yield Shop(client, counted, tokens, f"http://{HOST}:{listening.port}{below}")
        finally:
            await listening.stop(2.0)
            await app.close()
