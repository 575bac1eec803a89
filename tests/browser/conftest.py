"""A browser for each process of tests, and a window of its own for each test."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from tests.browser.chromium import chromium, why_not
from tests.browser.shop import Shop, a_shop
from tests.browser.visit import WATCH, Visit
from windlass.http.dashboard import live

OpenVisit: TypeAlias = Callable[..., AbstractAsyncContextManager[Visit]]

PATIENCE = 10_000
"""Milliseconds that something may take until it is seen."""


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium())
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def shop(browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Shop]:
    """A dashboard that needs no login; nobody is here to wait a second for each change."""
    del browser
    monkeypatch.setattr(live, "INTERVAL", 0.1)
    async with a_shop(tmp_path, insecure=True) as shop:
        yield shop


@pytest_asyncio.fixture(loop_scope="session")
async def guarded_shop(browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Shop]:
    """A dashboard for those who log in."""
    del browser
    monkeypatch.setattr(live, "INTERVAL", 0.1)
    async with a_shop(tmp_path) as shop:
        yield shop


@pytest_asyncio.fixture(loop_scope="session")
async def open_visit(browser: Browser) -> OpenVisit:
    """Open a window of a browser in which nobody has been, which complains of nothing."""

    @asynccontextmanager
    async def opened(shop: Shop, **settings: Any) -> AsyncGenerator[Visit]:  # noqa: ANN401 - those of a context
        chosen: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}, **settings}
        context = await browser.new_context(**chosen)
        context.set_default_timeout(PATIENCE)
        await context.add_init_script(WATCH)
        visit = Visit(shop, context, await context.new_page())
        try:
            yield visit
        finally:
            await context.close()
        assert visit.complaints == []

    return opened


@pytest_asyncio.fixture(loop_scope="session")
async def visit(shop: Shop, open_visit: OpenVisit) -> AsyncIterator[Visit]:
    """A window in front of a dashboard that needs no login."""
    async with open_visit(shop) as visit:
        yield visit
