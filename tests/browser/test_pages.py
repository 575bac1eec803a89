import pytest
from playwright.async_api import ViewportSize, expect

from tests.browser.conftest import OpenVisit
from tests.browser.shop import Shop
from tests.browser.visit import Visit
from tests.hostile_jobs import fill
from tests.hostile_text import LONG_NAME
from windlass.http.dashboard.pages.table import VIEWS

pytestmark = pytest.mark.asyncio(loop_scope="session")

PATHS = [view.path for view in VIEWS]
EMPTY = [path for path in PATHS if "{id" not in path]
PHONE: ViewportSize = {"width": 390, "height": 800}


@pytest.mark.parametrize("path", PATHS)
async def test_everybody_can_read_a_page_by_day_and_by_night(path: str, visit: Visit) -> None:
    dead = await visit.shop.stock()
    for scheme in ("light", "dark"):
        await visit.page.emulate_media(color_scheme=scheme)
        await visit.open(path.replace("{id:uuid}", dead))

        assert await visit.accessible() == [], scheme
        assert await visit.too_wide() == []
        await expect(visit.page.locator("h1")).to_have_count(1)


@pytest.mark.parametrize("path", EMPTY)
async def test_everybody_can_read_what_an_empty_page_tells_to_do(path: str, visit: Visit) -> None:
    await visit.open(path)

    await expect(visit.page.locator(".empty").first).to_be_visible()
    assert await visit.accessible() == []
    await visit.page.set_viewport_size(PHONE)
    assert await visit.too_wide() == []


async def test_everybody_can_read_the_login_and_what_is_refused(guarded_shop: Shop, open_visit: OpenVisit) -> None:
    async with open_visit(guarded_shop, viewport=PHONE) as visit:
        await visit.page.goto(f"{guarded_shop.url}/login")
        login = await visit.accessible(), await visit.too_wide()
        await visit.log_in("view", "/")
        await visit.page.goto(f"{guarded_shop.url}/audit")
        await expect(visit.page.get_by_role("heading", name="Not allowed")).to_be_visible()
        refused = await visit.accessible(), await visit.too_wide()
        visit.said("403")

    assert (login, refused) == (([], []), ([], []))


@pytest.mark.parametrize("path", PATHS)
async def test_a_page_fits_a_phone_and_a_desk_with_the_longest_names(
    path: str, shop: Shop, open_visit: OpenVisit
) -> None:
    dead = await shop.stock()
    for name in (LONG_NAME, "a/" * 100):
        await fill(shop.store, name, now=shop.client.clock.now(), name=name)
    async with open_visit(shop, viewport=PHONE, has_touch=True, is_mobile=True) as visit:
        await visit.open(path.replace("{id:uuid}", dead))

        assert await visit.too_wide() == []
    async with open_visit(shop) as visit:
        await visit.open(path.replace("{id:uuid}", dead))

        assert await visit.too_wide() == []


@pytest.mark.parametrize("width", [1280, PHONE["width"]])
@pytest.mark.parametrize("path", PATHS)
async def test_an_age_that_grows_longer_moves_and_hides_nothing(
    path: str, width: int, shop: Shop, open_visit: OpenVisit
) -> None:
    dead = await shop.stock()
    async with open_visit(shop, viewport={"width": width, "height": 800}) as visit:
        await visit.open(path.replace("{id:uuid}", dead))

        assert await visit.moved_by_ages() == []


async def test_the_state_that_is_shown_is_in_sight_on_a_phone(shop: Shop, open_visit: OpenVisit) -> None:
    async with open_visit(shop, viewport=PHONE) as visit:
        await visit.open("/jobs?state=cancelled")

        await expect(visit.page.locator(".tabs [aria-current]")).to_be_in_viewport(ratio=0.9)


async def test_the_time_is_that_of_the_reader(shop: Shop, open_visit: OpenVisit) -> None:
    [dead] = await shop.dead()
    job = await shop.job(dead)
    async with open_visit(shop, timezone_id="Asia/Tokyo", locale="en-GB") as visit:
        await visit.open(f"/jobs/{dead}")
        moment = visit.page.locator("time[data-as=moment]").first
        shown, meant = await moment.inner_text(), await moment.get_attribute("datetime")
        title = await moment.get_attribute("title")

    assert meant is not None
    assert job.created_at.isoformat()[:16] in meant
    hour = (job.created_at.hour + 9) % 24
    assert f" {hour:02}:{job.created_at.minute:02}" in shown.replace("\u202f", " ")
    assert title is not None
    assert "GMT+9" in title or "Japan" in title
