import re

import pytest
from playwright.async_api import Page, expect

from tests.browser.conftest import OpenVisit
from tests.browser.shop import Shop
from tests.browser.visit import Visit
from windlass.api.roles import Role
from windlass.core.states import State

pytestmark = pytest.mark.asyncio(loop_scope="session")

UNDO = 6_000
"""Milliseconds: a little longer than what was agreed to waits for."""


async def test_a_queue_is_paused_and_resumed(visit: Visit) -> None:
    await visit.shop.enqueue()
    await visit.open("/")
    await visit.page.get_by_role("button", name="Pause mail").click()
    await expect(visit.page.locator("#toasts")).to_contain_text("mail is paused")
    resume = visit.page.locator("table.queues").get_by_role("button", name="Resume mail")
    await expect(resume).to_be_visible()
    assert (await visit.shop.client.stats("mail")).paused
    await resume.click()

    await expect(visit.page.get_by_role("button", name="Pause mail")).to_be_visible()
    assert not (await visit.shop.client.stats("mail")).paused


async def test_dead_jobs_of_an_error_are_retried_at_once(guarded_shop: Shop, open_visit: OpenVisit) -> None:
    await guarded_shop.dead(3)
    await guarded_shop.dead(2, error="Unreachable")
    async with open_visit(guarded_shop) as visit:
        await visit.page.clock.install()
        await visit.log_in(Role.OPERATE, "/dead")
        row = visit.page.locator("tr[data-key=Declined]")
        await row.get_by_role("button", name="Retry").click()
        await expect(visit.page.locator("#confirm-text")).to_contain_text(re.compile(r"\b3\b"))
        await visit.page.locator("#confirm-yes").click()
        await expect(visit.page.get_by_role("button", name="Undo")).to_be_focused()
        await visit.page.clock.run_for(UNDO)

        await expect(visit.page.locator("#toasts")).to_contain_text("3 pending again")
        await expect(row).to_have_count(0)
        await expect(visit.page.locator("nav .count.bad")).to_have_text("2")
    stats = await guarded_shop.client.stats("bank")
    [entry] = await guarded_shop.store.audit(limit=10)
    assert (stats.pending, stats.dead) == (3, 2)
    assert (entry.actor, entry.action) == ("operate", "retry")
    assert "3" in str(entry)


async def test_what_destroys_looks_so_when_it_is_asked_for(visit: Visit) -> None:
    await visit.shop.dead()
    await visit.open("/dead")
    row, agree = visit.page.locator("tr[data-key=Declined]"), visit.page.locator("#confirm-yes")
    looks: list[str] = []
    for name in ("Delete", "Retry"):
        await row.get_by_role("button", name=name).click()
        await expect(agree).to_have_text(name)
        looks.append(await agree.evaluate("(each) => getComputedStyle(each).backgroundColor"))
        assert await visit.accessible() == []
        await visit.page.get_by_role("button", name="Leave it").click()

    assert looks == ["rgb(179, 38, 30)", "rgb(10, 92, 184)"]


async def test_a_delete_can_be_left_and_taken_back(visit: Visit) -> None:
    await visit.shop.dead(2)
    await visit.page.clock.install()
    await visit.open("/dead")
    delete = visit.page.locator("tr[data-key=Declined]").get_by_role("button", name="Delete")
    await delete.click()
    await expect(visit.page.locator("#confirm-text")).to_contain_text("audit")
    await visit.page.get_by_role("button", name="Leave it").click()
    await expect(visit.page.locator("#confirm")).to_be_hidden()
    await delete.click()
    await visit.page.locator("#confirm-yes").click()
    await visit.page.get_by_role("button", name="Undo").click()
    await visit.page.clock.run_for(UNDO)
    await expect(delete).to_be_enabled()
    assert (await visit.shop.client.stats("bank")).dead == 2
    await delete.click()
    await visit.page.locator("#confirm-yes").click()
    await visit.page.clock.run_for(UNDO)

    await expect(visit.page.get_by_role("heading", name="Nothing is dead")).to_be_visible()
    assert (await visit.shop.client.stats("bank")).dead == 0


async def test_one_job_is_retried_and_then_cancelled(visit: Visit) -> None:
    [dead] = await visit.shop.dead()
    await visit.open(f"/jobs/{dead}")
    await visit.page.get_by_role("button", name="Retry").click()
    await expect(visit.page.locator(".standing .state")).to_have_text("pending")
    await visit.page.get_by_role("button", name="Cancel").click()
    await visit.page.locator("#confirm-yes").click()

    await expect(visit.page.locator(".standing .state")).to_have_text("cancelled")
    assert (await visit.shop.job(dead)).state is State.CANCELLED


async def test_a_job_that_is_deleted_while_it_is_looked_at_is_told_to_be_gone(visit: Visit) -> None:
    [dead] = await visit.shop.dead()
    await visit.page.clock.install()
    await visit.open(f"/jobs/{dead}")
    await visit.page.get_by_role("button", name="Delete").click()
    await visit.page.locator("#confirm-yes").click()
    await visit.page.clock.run_for(UNDO)

    await expect(visit.page.get_by_role("heading", name="Not here")).to_be_visible()
    visit.said("404")


async def test_a_schedule_is_paused_resumed_and_run_now(visit: Visit) -> None:
    await visit.shop.schedule("nightly")
    await visit.open("/schedules")
    await visit.page.get_by_role("button", name="Pause nightly").click()
    await visit.page.get_by_role("button", name="Resume nightly").click()
    await expect(visit.page.get_by_role("button", name="Pause nightly")).to_be_visible()
    await visit.page.get_by_role("button", name="Run nightly now").click()
    await _agree(visit.page)

    await expect(visit.page.locator("#toasts")).to_contain_text("nightly has made a job")
    assert (await visit.shop.client.stats("mail")).pending == 1


async def test_who_may_only_view_is_offered_nothing(guarded_shop: Shop, open_visit: OpenVisit) -> None:
    dead = await guarded_shop.stock()
    async with open_visit(guarded_shop) as visit:
        await visit.log_in(Role.VIEW, "/")
        for path in ("/", "/jobs", f"/jobs/{dead}", "/dead", "/schedules", "/servers"):
            await visit.open(path)
            await expect(visit.page.locator("[data-call]")).to_have_count(0)
        await expect(visit.page.get_by_role("link", name="Audit")).to_have_count(0)


async def test_what_is_refused_is_told_and_changes_nothing(visit: Visit) -> None:
    await visit.shop.enqueue()
    await visit.open("/")
    visit.shop.set_away(away=True)
    await visit.page.get_by_role("button", name="Pause mail").click()

    await expect(visit.page.locator(".toast.bad")).to_contain_text("The store is away")
    visit.said("503")
    visit.shop.set_away(away=False)
    assert not (await visit.shop.client.stats("mail")).paused


async def _agree(page: Page) -> None:
    await page.locator("#confirm-yes").click()
