"""The dashboard below a path of another application: links, scripts, calls, streams and the login stay below it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.browser.conftest import OpenVisit
from tests.browser.shop import Shop, a_shop
from windlass.api.roles import Role
from windlass.http.dashboard import live
from windlass.http.dashboard.pages.table import VIEWS

pytestmark = pytest.mark.asyncio(loop_scope="session")

BELOW = "/team a/jobs"
"""A path with a character that addresses have no room for."""


@pytest_asyncio.fixture(loop_scope="session")
async def mounted(browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Shop]:
    del browser
    monkeypatch.setattr(live, "INTERVAL", 0.1)
    async with a_shop(tmp_path, below=BELOW) as shop:
        shop.url = shop.url.replace(" ", "%20")
        yield shop


async def test_a_browser_works_below_the_path_of_a_mount(mounted: Shop, open_visit: OpenVisit) -> None:
    dead = await mounted.stock()
    async with open_visit(mounted) as visit:
        await visit.log_in(Role.ADMIN, "/dead")
        for view in VIEWS:
            await visit.open(view.path.replace("{id:uuid}", dead))
        await visit.page.keyboard.press("g")
        await visit.page.keyboard.press("o")
        await visit.page.wait_for_url(f"{mounted.url}/")
        await visit.page.get_by_role("button", name="Pause mail").click()
        await expect(visit.page.locator("#toasts")).to_contain_text("mail is paused")
        await visit.page.locator("table.queues").get_by_role("link", name="mail", exact=True).click()
        await visit.page.wait_for_url(f"{mounted.url}/jobs?queue=mail")
        await visit.page.get_by_role("button", name="Log out").click()
        await visit.page.wait_for_url(f"{mounted.url}/login")

    assert (await mounted.client.stats("mail")).paused
