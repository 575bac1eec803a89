"""The attempts of jobs that belong to a tenant run inside of its scope."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar

from windlass.app.app import App
from windlass.core.errors import TenantNotFound
from windlass.core.retry import NoRetry
from windlass.core.states import State
from windlass.engine.context import current
from windlass.testing.conformance.fixtures import OpenApp, soon
from windlass.testing.conformance.served import ended, serving

_tenant_here: ContextVar[str | None] = ContextVar("tenant_here", default=None)


class Scopes:
    """A provider: knows every tenant but one, and keeps note of whom it was asked for."""

    def __init__(self, unknown: str = "") -> None:
        """Refuse `unknown`."""
        self.asked: list[str] = []
        self.inside: list[str] = []
        self._unknown = unknown

    def __call__(self, tenant: str) -> AbstractAsyncContextManager[None]:
        """Return the scope of `tenant`."""
        self.asked.append(tenant)
        return self._scope(tenant)

    @asynccontextmanager
    async def _scope(self, tenant: str) -> AsyncGenerator[None, None]:
        if tenant == self._unknown:
            raise TenantNotFound(tenant)
        self.inside.append(tenant)
        token = _tenant_here.set(tenant)
        try:
            yield
        finally:
            _tenant_here.reset(token)
            self.inside.remove(tenant)


class Swallowing:
    """A scope that takes care of whatever is raised inside of it."""

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *_: object) -> bool:
        return True


def swallowing(_tenant: str) -> Swallowing:
    """Return a scope, whoever the tenant is."""
    return Swallowing()


async def test_any_object_that_opens_scopes_is_a_provider(open_app: OpenApp) -> None:
    @asynccontextmanager
    async def plain(tenant: str) -> AsyncGenerator[str, None]:
        yield tenant

    for provider in (plain, Scopes(), swallowing):
        app = open_app(tenant_scope=provider)

        @app.job
        async def work() -> str:
            return "done"

        async with serving(app):
            assert await soon((await work.options(tenant="1").enqueue()).result()) == "done"


async def test_an_app_keeps_the_provider_that_it_is_given(open_app: OpenApp) -> None:
    provider = Scopes()

    assert open_app(tenant_scope=provider).tenant_scope is provider


async def test_an_app_has_no_provider_by_default(app: App) -> None:
    assert app.tenant_scope is None


async def test_a_provider_is_asked_for_the_tenant_of_the_job(open_app: OpenApp) -> None:
    provider = Scopes()
    app = open_app(tenant_scope=provider)

    @app.job
    async def work() -> str:
        return "done"

    async with serving(app):
        assert await soon((await work.options(tenant="42").enqueue()).result()) == "done"

    assert provider.asked == ["42"]


async def test_a_tenant_that_the_provider_does_not_know_fails_the_attempt(open_app: OpenApp) -> None:
    app = open_app(tenant_scope=Scopes(unknown="99"), retry=NoRetry())
    ran: list[str] = []

    @app.job
    async def work() -> None:
        ran.append("it")

    async with serving(app):
        job = await ended(await work.options(tenant="99").enqueue())

    assert (job.state, ran) == (State.DEAD, [])
    assert (job.last_error or "").startswith("TenantNotFound: tenant '99' is not known here")
    assert TenantNotFound("99").tenant == "99"


async def test_a_job_with_a_tenant_runs_inside_of_its_scope(open_app: OpenApp) -> None:
    scopes = Scopes()
    app = open_app(tenant_scope=scopes)

    @app.job
    async def here() -> list[str | None]:
        return [*scopes.inside, _tenant_here.get(), current().job.tenant]

    @app.job
    def thread() -> list[str | None]:
        return [*scopes.inside, _tenant_here.get(), current().job.tenant]

    async with serving(app):
        for work in (here, thread):
            assert await soon((await work.options(tenant="1").enqueue()).result()) == ["1", "1", "1"]


async def test_a_job_without_a_tenant_runs_without_the_provider(open_app: OpenApp) -> None:
    scopes = Scopes()
    app = open_app(tenant_scope=scopes)

    @app.job
    async def work() -> str:
        return "done"

    async with serving(app):
        assert await soon((await work.enqueue()).result()) == "done"

    assert scopes.asked == []


async def test_a_job_with_a_tenant_runs_directly_where_there_is_no_provider(app: App) -> None:
    @app.job
    async def work() -> str | None:
        return current().job.tenant

    async with serving(app):
        assert await soon((await work.options(tenant="1").enqueue()).result()) == "1"


async def test_whom_a_job_belongs_to_is_taken_from_where_it_is_enqueued(open_app: OpenApp) -> None:
    app = open_app(tenant=_tenant_here.get)

    @app.job
    async def work() -> str | None:
        return current().job.tenant

    token = _tenant_here.set("here")
    taken, named = await work.enqueue(), await work.options(tenant="there").enqueue()
    _tenant_here.reset(token)
    async with serving(app):
        assert await soon(taken.result()) == "here"
        assert await soon(named.result()) == "there"


async def test_an_error_inside_of_a_scope_leaves_it_and_fails_the_attempt(open_app: OpenApp) -> None:
    scopes = Scopes()
    app = open_app(tenant_scope=scopes, retry=NoRetry())

    @app.job
    async def work() -> None:
        raise LookupError("inside")

    async with serving(app):
        job = await ended(await work.options(tenant="1").enqueue())

    assert (job.state, job.last_error) == (State.DEAD, "LookupError: inside")
    assert scopes.inside == []


async def test_an_error_that_a_scope_takes_care_of_is_none(open_app: OpenApp) -> None:
    app = open_app(tenant_scope=swallowing)

    @app.job
    async def work() -> str:
        raise LookupError("inside")

    async with serving(app):
        job = await ended(await work.options(tenant="1").enqueue())

    assert (job.state, job.result) == (State.SUCCEEDED, None)
