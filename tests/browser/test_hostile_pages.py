import pytest
from playwright.async_api import expect

from tests.browser.shop import Shop
from tests.browser.visit import Visit
from tests.hostile_jobs import Filled, fill
from tests.hostile_text import BYTES, TEXTS, WORST
from windlass.http.dashboard import live

pytestmark = pytest.mark.asyncio(loop_scope="session")

WIDTHS = (1280, 390)
LISTS = ("/", "/jobs", "/dead", "/schedules", "/servers", "/audit?limit=1000")


async def test_no_list_runs_a_script_or_breaks(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    # such pages are long, and are not made anew ten times a second
    monkeypatch.setattr(live, "INTERVAL", 5.0)
    # what is filled last is shown first where there is no room for all
    for text in TEXTS:
        await _fill(visit.shop, text, zone="UTC")
    for text in WORST:
        await _fill(visit.shop, text)
    for path in LISTS:
        await visit.open(path)
        await _look_around(visit, path)


async def test_no_page_of_a_job_runs_a_script_or_breaks(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "INTERVAL", 5.0)
    filled = [await _fill(visit.shop, text) for text in WORST]
    filled += [await _fill(visit.shop, "harmless", data=data) for data in BYTES[:4]]
    for place, each in enumerate(filled):
        ends = sorted(each.ids)
        await visit.open(f"/jobs/{each.ids['dead']}")
        await _look_around(visit, str(place))
        # of the others each comes up several times
        await visit.open(f"/jobs/{each.ids[ends[place % len(ends)]]}")
        await _look_around(visit, str(place))


async def test_no_stream_runs_a_script_or_breaks(visit: Visit) -> None:
    [claim] = await visit.shop.claimed()
    await visit.open(f"/jobs/{claim.job.id}")
    for text in WORST:
        await visit.shop.note(claim, text)

    await expect(visit.page.locator("[data-log] .line")).to_have_count(len(WORST))
    await _look_around(visit, "a stream")


async def test_nothing_that_is_asked_or_told_runs_a_script(visit: Visit) -> None:
    for text in WORST[:4]:
        await _fill(visit.shop, "harmless", name=text)
    await visit.open("/")
    for button in await visit.page.locator("table.queues [data-call]").all():
        async with visit.page.expect_response(lambda reply: reply.request.method == "POST"):
            await button.click()
        # who leaves before that is asked whether to
        await expect(visit.page.locator("[aria-busy=true]")).to_have_count(0)
        await expect(visit.page.locator(".toast").last).to_be_visible()
    visit.said("422")
    await visit.open("/dead")
    for button in await visit.page.locator("[data-bulk=delete]").all():
        await button.click()
        await visit.page.get_by_role("button", name="Leave it").click()
    await _look_around(visit, "questions")


async def _fill(
    shop: Shop, text: str, *, data: bytes | None = None, name: str | None = None, zone: str | None = None
) -> Filled:
    return await fill(shop.store, text, now=shop.client.clock.now(), data=data, name=name, zone=zone)


async def _look_around(visit: Visit, where: str) -> None:
    """Open all that is folded, at each width; whatever a page does that it should not, a visit complains of."""
    for width in WIDTHS:
        await visit.page.set_viewport_size({"width": width, "height": 800})
        assert await visit.too_wide() == [], (where, width)
        assert await visit.too_high() == [], (where, width)
    await visit.page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert await visit.too_wide() == [], where
    assert visit.complaints == [], where
