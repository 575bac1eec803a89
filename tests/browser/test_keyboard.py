import asyncio
import re

import pytest
from playwright.async_api import Page, Route, expect

from tests.browser.conftest import OpenVisit
from tests.browser.shop import Shop
from tests.browser.visit import Visit

pytestmark = pytest.mark.asyncio(loop_scope="session")

LEADS = {"o": "/", "j": "/jobs", "d": "/dead", "s": "/schedules", "v": "/servers", "a": "/audit"}
BACKGROUND = "getComputedStyle(document.documentElement).backgroundColor"


async def test_two_keys_lead_to_each_page(visit: Visit) -> None:
    await visit.open("/audit")
    for key, path in LEADS.items():
        await _keys(visit.page, "g", key)
        await expect(visit.page).to_have_url(visit.shop.url + path)
        await visit.page.locator("#pulse[data-state=live]").wait_for()


async def test_rows_are_stepped_through_and_opened(visit: Visit) -> None:
    jobs = await visit.shop.enqueue(3)
    await visit.open("/jobs")
    await _keys(visit.page, "j", "j", "j", "j", "k")
    await expect(visit.focused()).to_have_attribute("href", f"/jobs/{jobs[1]}")
    # what comes meanwhile takes nothing out of the hands of the reader
    await visit.shop.enqueue(1)
    await expect(visit.page.locator("[data-newer]")).to_be_visible()
    await expect(visit.focused()).to_have_attribute("href", f"/jobs/{jobs[1]}")
    await visit.page.keyboard.press("Enter")

    await expect(visit.page).to_have_url(f"{visit.shop.url}/jobs/{jobs[1]}")


async def test_a_row_in_focus_stays_in_focus_when_the_first_update_comes(visit: Visit) -> None:
    jobs = await visit.shop.enqueue(3)
    may_stream = asyncio.Event()

    async def hold(route: Route) -> None:
        await may_stream.wait()
        await route.continue_()

    await visit.page.route("**/live/**", hold)
    await visit.page.goto(f"{visit.shop.url}/jobs")
    await _keys(visit.page, "j", "j")
    await expect(visit.focused()).to_have_attribute("href", f"/jobs/{jobs[1]}")
    may_stream.set()
    await visit.page.locator("#pulse[data-state=live]").wait_for()
    await visit.shop.enqueue(1)
    await expect(visit.page.locator("[data-newer]")).to_be_visible()

    await expect(visit.focused()).to_have_attribute("href", f"/jobs/{jobs[1]}")


async def test_a_search_is_typed_and_sent(visit: Visit) -> None:
    await visit.shop.enqueue(2)
    [rare] = await visit.shop.enqueue(1, kind="rare.kind")
    await visit.open("/jobs")
    await visit.page.keyboard.press("/")
    # letters that lead elsewhere are letters here
    await visit.page.keyboard.type("rare.kind")
    await expect(visit.focused()).to_have_value("rare.kind")
    await visit.page.keyboard.press("Enter")

    await expect(visit.page).to_have_url(re.compile(r"/jobs\?.*text=rare\.kind"))
    rows = visit.page.locator("tbody[data-row] tr")
    await expect(rows).to_have_count(1)
    await expect(rows).to_have_attribute("data-key", rare)
    await visit.page.go_back()
    await expect(rows).to_have_count(3)


async def test_what_is_typed_stays_while_the_page_goes_on(visit: Visit) -> None:
    await visit.shop.enqueue(1)
    await visit.open("/jobs")
    await visit.page.keyboard.press("/")
    await visit.page.keyboard.type("half a wo")
    await visit.shop.enqueue(1)
    await expect(visit.page.locator("[data-newer]")).to_be_visible()

    await expect(visit.focused()).to_have_value("half a wo")


async def test_a_dead_job_is_retried_and_one_left_without_a_mouse(visit: Visit) -> None:
    await visit.shop.dead(2)
    await visit.open("/dead")
    await visit.page.keyboard.press("j")
    await expect(visit.focused()).to_have_text("Declined")
    for _ in range(10):
        await visit.page.keyboard.press("Tab")
        if await visit.focused().get_attribute("data-bulk") == "delete":
            break
    await visit.page.keyboard.press("Enter")
    dialog = visit.page.locator("#confirm")
    await expect(dialog).to_be_visible()
    # the safe answer comes first, and keys lead nowhere behind a question
    await expect(visit.page.get_by_role("button", name="Leave it")).to_be_focused()
    await _keys(visit.page, "g", "j")
    await visit.page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    await expect(visit.focused()).to_have_attribute("data-bulk", "delete")
    await expect(visit.page).to_have_url(f"{visit.shop.url}/dead")
    assert (await visit.shop.client.stats("bank")).dead == 2


async def test_the_keys_are_told(visit: Visit) -> None:
    await visit.open("/")
    await visit.page.keyboard.press("?")
    keys = visit.page.locator("dialog#keys")
    await expect(keys).to_be_visible()
    assert await visit.accessible() == []
    await visit.page.keyboard.press("Escape")

    await expect(keys).to_be_hidden()


async def test_the_first_tab_leads_past_the_head_of_the_page(visit: Visit) -> None:
    await visit.open("/jobs")
    await visit.page.keyboard.press("Tab")
    await expect(visit.focused()).to_have_text("Skip to the page")
    await expect(visit.focused()).to_be_in_viewport()
    await visit.page.keyboard.press("Enter")

    await expect(visit.page.locator("main")).to_be_focused()


async def test_light_and_dark_are_chosen_and_kept(shop: Shop, open_visit: OpenVisit) -> None:
    async with open_visit(shop, color_scheme="dark") as visit:
        await visit.open("/")
        dark = await visit.page.evaluate(BACKGROUND)
        await visit.page.keyboard.press("t")
        light = await visit.page.evaluate(BACKGROUND)
        await visit.page.reload()
        kept = await visit.page.evaluate(BACKGROUND)
        await visit.page.get_by_role("button", name="Change between light and dark").click()
        back = await visit.page.evaluate(BACKGROUND)

    assert (kept, back) == (light, dark)
    assert light != dark


async def _keys(page: Page, *keys: str) -> None:
    for key in keys:
        await page.keyboard.press(key)
