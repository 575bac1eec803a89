import re

import pytest
from playwright.async_api import expect

from tests.browser.conftest import OpenVisit
from tests.browser.shop import Shop
from tests.http.given_app import secret_of
from windlass.api.roles import Role

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_wrong_token_is_told_and_the_right_one_leads_on(guarded_shop: Shop, open_visit: OpenVisit) -> None:
    async with open_visit(guarded_shop) as visit:
        page = visit.page
        await page.goto(f"{guarded_shop.url}/audit?limit=5")
        await expect(page).to_have_url(re.compile(r"/login\?next=%2Faudit%3Flimit%3D5$"))
        await page.get_by_label("Token").fill("wl_wrong")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_have_text("This token is not known.")
        visit.said("401")
        await page.get_by_label("Token").fill(secret_of(Role.ADMIN))
        await page.keyboard.press("Enter")

        await expect(page).to_have_url(f"{guarded_shop.url}/audit?limit=5")
        await expect(page.locator(".who")).to_have_text("admin")
        [cookie] = await visit.context.cookies()
        assert cookie.get("httpOnly")
        assert cookie.get("sameSite") == "Strict"


async def test_a_logout_ends_the_session(guarded_shop: Shop, open_visit: OpenVisit) -> None:
    async with open_visit(guarded_shop) as visit:
        await visit.log_in(Role.ADMIN)
        [kept] = await visit.context.cookies()
        await visit.page.get_by_role("button", name="Log out").click()
        await expect(visit.page).to_have_url(f"{guarded_shop.url}/login")
        assert await visit.context.cookies() == []
        # whoever had copied it has nothing
        await visit.context.add_cookies([{"name": "windlass", "value": kept.get("value", ""), "url": guarded_shop.url}])
        await visit.page.goto(f"{guarded_shop.url}/audit")

        await expect(visit.page).to_have_url(re.compile("/login"))


async def test_a_button_leads_to_the_login_when_the_session_is_over(guarded_shop: Shop, open_visit: OpenVisit) -> None:
    async with open_visit(guarded_shop) as visit:
        await guarded_shop.enqueue()
        await visit.log_in(Role.ADMIN, "/")
        await expect(visit.page.locator("#pulse")).to_have_attribute("data-state", "live")
        guarded_shop.tokens.tokens = []
        await visit.page.get_by_role("button", name="Pause mail").click()

        await expect(visit.page).to_have_url(re.compile(r"/login\?next=%2F$"))
        visit.said("401")


async def test_a_page_that_is_left_open_leads_to_the_login_when_the_session_is_over(
    guarded_shop: Shop, open_visit: OpenVisit
) -> None:
    async with open_visit(guarded_shop) as visit:
        await visit.page.clock.install()
        await visit.log_in(Role.ADMIN)
        await expect(visit.page.locator("#pulse")).to_have_attribute("data-state", "live")
        await visit.look(away=True)
        guarded_shop.tokens.tokens = []
        await visit.look(away=False)
        await expect(visit.page.locator("#pulse")).to_have_attribute("data-state", "away")
        await visit.page.clock.run_for(4_000)

        await expect(visit.page).to_have_url(re.compile(r"/login\?next=%2Faudit$"))
        visit.said("401")
