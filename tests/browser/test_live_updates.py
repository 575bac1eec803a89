import pytest
from playwright.async_api import expect

from tests.browser.visit import Visit
from windlass.core.verdict import ToSucceeded

pytestmark = pytest.mark.asyncio(loop_scope="session")

FROM_END = "(each) => each.scrollHeight - each.clientHeight - each.scrollTop"


async def test_the_overview_counts_on_by_itself(visit: Visit) -> None:
    await visit.shop.enqueue(1)
    await visit.open("/")
    waiting = visit.page.locator("tr[data-key=mail] td[data-head=Waiting]")
    await expect(waiting).to_have_text("1")
    await _mark(visit)
    await visit.shop.enqueue(2)
    await visit.shop.dead(1)

    await expect(waiting).to_have_text("3")
    await expect(visit.page.locator("nav .count.bad")).to_have_text("1")
    await expect(visit.page.locator("tr[data-key=bank]")).to_be_visible()
    assert await _marked(visit)


async def test_rows_stay_where_they_are_and_newer_jobs_are_announced(visit: Visit) -> None:
    [first] = await visit.shop.enqueue(1)
    await visit.open("/jobs")
    rows = visit.page.locator("tbody[data-row] tr")
    await expect(rows).to_have_count(1)
    await visit.shop.enqueue(2)

    await expect(visit.page.locator("[data-newer]")).to_have_text("Show 2 newer")
    await expect(rows).to_have_count(1)
    await visit.page.locator("[data-newer]").click()
    await expect(rows).to_have_count(3)
    await expect(rows.last).to_have_attribute("data-key", first)


async def test_a_row_tells_what_becomes_of_its_job(visit: Visit) -> None:
    [claim] = await visit.shop.claimed()
    await visit.open("/jobs")
    state = visit.page.locator(f"tr[data-key='{claim.job.id}'] .state")
    await expect(state).to_have_text("running")
    await visit.shop.settle([claim], ToSucceeded())

    await expect(state).to_have_text("succeeded")


async def test_a_running_job_tells_how_far_it_is(visit: Visit) -> None:
    [claim] = await visit.shop.claimed()
    await visit.shop.note(claim, "the first")
    await visit.open(f"/jobs/{claim.job.id}")
    log, bar = visit.page.get_by_role("log"), visit.page.locator("progress")
    await expect(log).to_contain_text("the first")
    await visit.shop.note(claim, "the second", done=7)

    await expect(log).to_contain_text("the second")
    await expect(bar).to_have_attribute("value", "7")
    await visit.shop.settle([claim], ToSucceeded(b'{"sent": 7}', "json"))
    await expect(visit.page.locator(".state.succeeded")).to_be_visible()
    await expect(visit.page.get_by_role("heading", name="Result")).to_be_visible()


async def test_a_log_follows_its_end_while_the_reader_is_there(visit: Visit) -> None:
    [claim] = await visit.shop.claimed()
    for number in range(60):
        await visit.shop.note(claim, f"line {number}")
    await visit.open(f"/jobs/{claim.job.id}")
    log = visit.page.get_by_role("log")
    assert await log.evaluate(f"{FROM_END} < 5")
    await visit.shop.note(claim, "the newest")
    await expect(log).to_contain_text("the newest")
    assert await log.evaluate(f"{FROM_END} < 5")
    await log.evaluate("(each) => { each.scrollTop = 0; }")
    await visit.shop.note(claim, "one more")

    await expect(log).to_contain_text("one more")
    assert await log.evaluate("(each) => each.scrollTop") == 0


async def test_what_the_reader_has_opened_and_focused_stays(visit: Visit) -> None:
    [dead] = await visit.shop.dead()
    await visit.open(f"/jobs/{dead}")
    trace = visit.page.locator("[data-key=delivery-1] details")
    await trace.locator("summary").click()
    await expect(trace.locator("pre")).to_be_visible()
    await visit.shop.client.retry(dead)
    await visit.shop.claim("bank")

    await expect(visit.page.locator("[data-key=delivery-2]")).to_be_visible()
    await expect(trace.locator("pre")).to_be_visible()
    await expect(trace.locator("summary")).to_be_focused()


async def test_a_list_stays_where_the_reader_has_scrolled_to(visit: Visit) -> None:
    await visit.shop.enqueue(60)
    await visit.open("/jobs")
    row = visit.page.locator("tbody[data-row] tr").nth(30)
    await row.scroll_into_view_if_needed()
    before = await row.bounding_box(), await row.get_attribute("data-key")
    await visit.shop.enqueue(5)
    await expect(visit.page.locator("[data-newer]")).to_have_text("Show 5 newer")

    assert (await row.bounding_box(), await row.get_attribute("data-key")) == before


async def test_a_store_that_is_away_is_told_and_so_is_its_return(visit: Visit) -> None:
    await visit.shop.enqueue()
    await visit.open("/")
    visit.shop.set_away(away=True)
    banner = visit.page.locator("#away")
    await expect(banner).to_be_visible()
    await expect(banner).to_contain_text("the store is away")
    visit.shop.set_away(away=False)
    await visit.shop.enqueue()

    await expect(banner).to_be_hidden()
    await expect(visit.page.locator("tr[data-key=mail] td[data-head=Waiting]")).to_have_text("2")


async def test_a_page_that_cannot_be_made_says_so_and_what_to_do(visit: Visit) -> None:
    visit.shop.set_away(away=True)
    await visit.page.goto(f"{visit.shop.url}/jobs")

    await expect(visit.page.get_by_role("heading", name="The store does not answer")).to_be_visible()
    visit.said("503")


async def test_a_page_rests_while_nobody_looks_at_it(visit: Visit) -> None:
    await visit.open("/")
    await visit.look(away=True)
    await expect(visit.page.locator("#pulse")).to_have_attribute("data-state", "quiet")
    await visit.shop.enqueue()
    await visit.look(away=False)

    await expect(visit.page.locator("#pulse")).to_have_attribute("data-state", "live")
    await expect(visit.page.locator("tr[data-key=mail]")).to_be_visible()


async def _mark(visit: Visit) -> None:
    """Leave something on the page that a reload would take away."""
    await visit.page.evaluate("window.sameAsBefore = true")


async def _marked(visit: Visit) -> bool:
    marked: bool = await visit.page.evaluate("window.sameAsBefore === true")
    return marked
