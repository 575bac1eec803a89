"""Somebody in front of a browser, and all that a browser complains of meanwhile."""

import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import BrowserContext, ConsoleMessage, Dialog, Error, Locator, Page, Request

from tests.browser.shop import Shop
from tests.http.given_app import secret_of

WATCH = """
window.__pwned = () => console.error("a script of somebody else ran");
document.addEventListener("securitypolicyviolation", (event) => {
  console.error(`refused by the policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
});
"""
"""What runs before every page."""
AXE: Any = import_module("axe_playwright_python.async_playwright").Axe()
"""It has no types of its own."""
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]


class Visit:
    """One browser of its own: its pages, its cookies, and what went wrong in it."""

    def __init__(self, shop: Shop, context: BrowserContext, page: Page) -> None:
        self.shop = shop
        self.context = context
        self.page = page
        self.complaints: list[str] = []
        page.on("console", self._heard)
        page.on("pageerror", self._failed)
        page.on("dialog", self._asked)
        page.on("request", self._requested)

    async def open(self, path: str) -> None:
        """Go to a page, and return when it is live."""
        reply = await self.page.goto(self.shop.url + path)
        assert reply is not None
        assert reply.status == 200, await reply.text()
        await self.page.locator("#pulse[data-state=live]").wait_for()

    async def look(self, *, away: bool) -> None:
        """Show another tab, or this one again."""
        await self.page.evaluate(
            """(hidden) => {
              Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
              document.dispatchEvent(new Event("visibilitychange"));
            }""",
            away,
        )

    async def log_in(self, who: str, path: str = "/audit") -> None:
        """Log in, and go on to a page."""
        await self.page.goto(f"{self.shop.url}/login?next={path}")
        await self.page.get_by_label("Token").fill(secret_of(who))
        await self.page.get_by_role("button", name="Log in").click()
        await self.page.wait_for_url(self.shop.url + path)

    def said(self, pattern: str) -> None:
        """Take back complaints that a test has provoked; there must be one."""
        left = [each for each in self.complaints if not re.search(pattern, each)]
        assert len(left) < len(self.complaints), self.complaints
        self.complaints = left

    async def accessible(self) -> Sequence[str]:
        """Return what a reader with another way to read could not do here."""
        options = {"resultTypes": ["violations"], "runOnly": {"type": "tag", "values": RULES}}
        found = (await AXE.run(self.page, options=options)).response["violations"]
        return [
            f"{each['id']}: {each['help']} ({node['html'][:200]} {node.get('failureSummary', '')[:300]})"
            for each in found
            for node in each["nodes"][:3]
        ]

    async def too_wide(self) -> Sequence[str]:
        """Return what reaches out of the window, but for what scrolls within itself."""
        found: list[str] = await self.page.evaluate(TOO_WIDE)
        return found

    async def too_high(self) -> Sequence[str]:
        """Return what fills a screen alone, but for what scrolls within itself."""
        found: list[str] = await self.page.evaluate(TOO_HIGH)
        return found

    async def moved_by_ages(self) -> Sequence[str]:
        """Return what is elsewhere, or cut, when every age is as long as one can be."""
        found: list[str] = await self.page.evaluate(AGED)
        return found

    def focused(self) -> Locator:
        return self.page.locator(":focus")

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            self.complaints.append(f"{message.type}: {message.text}")

    def _failed(self, error: Error) -> None:
        self.complaints.append(f"error: {error}")

    async def _asked(self, dialog: Dialog) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

    def _requested(self, request: Request) -> None:
        if urlsplit(request.url).netloc != urlsplit(self.shop.url).netloc:
            self.complaints.append(f"asked another host: {request.url[:200]}")


TOO_HIGH = """() => {
  const higher = (each) => each.getBoundingClientRect().height > 900;
  return [...document.querySelectorAll("main :is(h1, h2, h3, p, li, dt, dd, th, td, summary, label)")]
    .filter(higher)
    .slice(0, 10)
    .map((each) => `${each.outerHTML.slice(0, 100)} is ${Math.round(each.getBoundingClientRect().height)} high`);
}"""
AGED = """() => {
  const ages = [...document.querySelectorAll("time[data-as=age], time[data-as=length]")];
  const rows = [...document.querySelectorAll("main :is(tr, li, dl > div, article)")];
  const places = () => rows.map((each) => each.getBoundingClientRect().top);
  const say = (longest) => {
    for (const each of ages) each.textContent = each.dataset.as === "age" ? `${longest} ago` : longest;
  };
  const around = (each) => each.closest("td, dd, li") ?? document.body;
  const isCut = (each) => {
    const { left, right } = each.getBoundingClientRect();
    const cell = around(each).getBoundingClientRect();
    return each.getClientRects().length > 1 || left < cell.left || right > cell.right;
  };
  say("7 s");
  const before = places();
  say("2 h 59 min");
  const after = places();
  const moved = rows.filter((_, at) => Math.abs(before[at] - after[at]) > 1);
  return [
    ...moved.map((each) => `moved: ${each.outerHTML.slice(0, 120)}`),
    ...ages.filter(isCut).map((each) => `cut or broken: ${around(each).outerHTML.slice(0, 200)}`),
  ].slice(0, 10);
}"""
TOO_WIDE = """() => {
  const most = window.innerWidth + 1;
  const reaches = (each) => {
    const { left, right, width } = each.getBoundingClientRect();
    const { display, overflowX } = getComputedStyle(each);
    // what stands in a line is measured with the blanks at its end, and is a part of what holds it
    if (width === 0 || display === "inline") return false;
    return Math.max(right, overflowX === "visible" ? left + each.scrollWidth : 0) > most;
  };
  // what is cut off or scrolls within itself reaches nowhere, as long as that which holds it stays inside
  const held = (each) => {
    for (let at = each.parentElement; at && at !== document.body; at = at.parentElement) {
      if (getComputedStyle(at).overflowX !== "visible" && !reaches(at)) return true;
    }
    return false;
  };
  const page = document.documentElement.scrollWidth;
  const found = [...document.body.querySelectorAll("*")]
    .filter((each) => reaches(each) && !held(each))
    .slice(0, 10)
    .map((each) => `${each.outerHTML.slice(0, 100)} ends at ${Math.round(each.getBoundingClientRect().right)}`);
  return page > window.innerWidth ? [`the page is ${page} wide`, ...found] : found;
}"""
