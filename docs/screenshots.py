"""Takes a picture of each page of the dashboard for the docs, of a staged shop: `make screenshots`.

It needs Chromium: one that the system has, else the one that WINDLASS_TEST_CHROMIUM names.
"""
# ruff: noqa: INP001, T201 - a program in a folder of pages

import asyncio
import os
import shutil
import sys
from pathlib import Path
from typing import Final, NamedTuple

from playwright.async_api import Browser, Page, async_playwright

from docs.staged_shop import StagedShop
from windlass import JobFilter, State
from windlass.http.auth import NoAuth
from windlass.http.dashboard.app import Dashboard
from windlass.http.listening import Listening

PICTURES: Final = Path(__file__).resolve().parent / "pictures"
PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome")
LARGEST: Final = 200 * 1024
"""Bytes: more than that makes a clone slow for everybody."""
WIDE: Final = 1280
PHONE: Final = 390
LEAST: Final = 560
HIGHEST: Final = 1_000
"""Pixels."""


class Shot(NamedTuple):
    """A picture: its name, the path of its page, and how it is looked at."""

    name: str
    path: str
    width: int = WIDE
    dark: bool = False


def shots(job: str) -> list[Shot]:
    """Return the pictures to take; `job` is the one that has a page."""
    return [
        Shot("overview", "/"),
        Shot("overview-dark", "/", dark=True),
        Shot("overview-phone", "/", width=PHONE),
        Shot("jobs", "/jobs"),
        Shot("job", f"/jobs/{job}"),
        Shot("job-dark", f"/jobs/{job}", dark=True),
        Shot("dead", "/dead"),
        Shot("schedules", "/schedules"),
        Shot("servers", "/servers"),
        Shot("audit", "/audit"),
    ]


def chromium() -> str | None:
    """Return the browser of this system, if there is one."""
    named = os.environ.get("WINDLASS_TEST_CHROMIUM")
    return named or next((found for name in PROGRAMS if (found := shutil.which(name))), None)


async def take(browser: Browser, url: str, shot: Shot) -> str:
    """Take one picture; return what there is to say of it."""
    page = await browser.new_page(
        viewport={"width": shot.width, "height": LEAST},
        color_scheme="dark" if shot.dark else "light",
        timezone_id="Europe/Berlin",
        locale="en-GB",
        device_scale_factor=1,
    )
    try:
        reply = await page.goto(url + shot.path)
        if reply is None or not reply.ok:
            return f"{shot.name}: {shot.path} answers {None if reply is None else reply.status}: left out"
        await page.locator("#pulse[data-state=live]").wait_for()
        file = PICTURES / f"{shot.name}.png"
        await page.screenshot(path=file, clip={"x": 0, "y": 0, "width": shot.width, "height": await _height(page)})
    finally:
        await page.close()
    size = file.stat().st_size
    if size > LARGEST:
        file.unlink()
        sys.exit(f"{file.name} has {size:,} bytes, and may have {LARGEST:,}: show less on it")
    return f"{file.name}: {size:,} bytes"


async def _height(page: Page) -> int:
    """Return how much of a page is shown: all, but no more than a person would scroll."""
    height = int(await page.evaluate("document.documentElement.scrollHeight"))
    shown = min(height, HIGHEST)
    width = WIDE if page.viewport_size is None else page.viewport_size["width"]
    await page.set_viewport_size({"width": width, "height": shown})
    return shown


async def main() -> None:
    """Stage the shop, show it, and take all pictures."""
    program = chromium()
    if program is None:
        sys.exit("there is no Chromium here: install it (apt install chromium), or name one by WINDLASS_TEST_CHROMIUM")
    PICTURES.mkdir(exist_ok=True)
    shop = StagedShop()
    async with shop.client:
        await shop.play()
        job = (await shop.client.store.newest(_RUNNING, before=None, limit=1, most=10_000)).jobs[0]
        app = Dashboard(shop.client, auth=NoAuth(), store="postgres://db/shop")
        async with (
            Listening(app, "127.0.0.1", 0, stopping=app.stop_waiting) as listening,
            async_playwright() as playwright,
        ):
            browser = await playwright.chromium.launch(executable_path=program)
            try:
                for shot in shots(job.id):
                    await shop.beat()
                    print(await take(browser, f"http://127.0.0.1:{listening.port}", shot))
            finally:
                await browser.close()
        await app.close()


_RUNNING: Final = JobFilter(state=State.RUNNING, kind="monthly_report")

if __name__ == "__main__":
    asyncio.run(main())
