import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from typing import TypeAlias
from urllib.parse import quote

import pytest

from tests.hostile_jobs import Filled, fill
from tests.hostile_text import BREAKOUTS, BYTES, HALF_TEXTS, LONG_NAME, RUN, TEXTS, WORST
from tests.http.dashboard.given_dashboard import Element, GivenDashboard, a_dashboard, read
from tests.http.dashboard.watching import PATHS, WatchedDashboard, a_watched_dashboard
from windlass.http.dashboard.pages.table import VIEWS

Shapes: TypeAlias = frozenset[tuple[str, str, tuple[str, ...]]]
"""The pages, the elements on each, and the names of their attributes."""

HARMLESS = ("harmless", "two words\nand a line\n", "word " * 2_000, "x" * 200, "", "7", '{"a": [1]}', *"abcde")
ALL = (*TEXTS, *HALF_TEXTS)
AT_ONCE = 12
"""So many jobs of each state that no page has to leave one out."""
ADDRESSES = ("href", "src", "action", "formaction", "data-stream", "data-root", "data-next", "xlink:href")
IN_ADDRESSES = (*(text for text in WORST if len(text) < 200), *BREAKOUTS[:14])
OBEYED = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff]")
"""What is no letter: it turns the direction of writing, hides, moves, or ends a line."""
FIELDS = [(view.path, field) for view in VIEWS for field in view().asks.__struct_fields__]


def test_there_are_enough_of_them() -> None:
    assert len({*TEXTS}) >= 200
    assert {*WORST} <= {*TEXTS}


@pytest.fixture(scope="module")
def harmless() -> Shapes:
    """What pages are made of when nobody means any harm."""
    return asyncio.run(_harmless())


@pytest.mark.parametrize("at", range(0, len(ALL), AT_ONCE))
async def test_hostile_text_in_any_field_adds_no_element_to_any_page(at: int, harmless: Shapes) -> None:
    async with a_dashboard() as given:
        filled = [await _fill(given, text) for text in ALL[at : at + AT_ONCE]]
        found = [each async for each in _pages(given, filled)]

    assert _shapes(found) - harmless == set()
    _check(found)


async def test_hostile_names_of_queues_and_kinds_add_no_element_to_any_page(harmless: Shapes) -> None:
    async with a_dashboard() as given:
        filled = [await _fill(given, text, name=text or "x") for text in (*WORST, LONG_NAME)]
        found = [each async for each in _pages(given, filled)]

    assert _shapes(found) - harmless == set()
    _check(found)


async def test_what_is_no_text_adds_no_element_to_any_page(harmless: Shapes) -> None:
    async with a_dashboard() as given:
        filled = [await _fill(given, "harmless", data=data) for data in BYTES]
        found = [each async for each in _pages(given, filled)]

    assert _shapes(found) - harmless == set()


async def test_hostile_text_adds_no_element_to_what_streams_tell(harmless: Shapes) -> None:
    async with a_watched_dashboard() as given:
        filled = [await _fill(given, text) for text in WORST]
        found = [each async for each in _regions(given, filled)]

    assert {page for page, _ in found} == {*PATHS}
    assert _shapes(found) - harmless == set()
    _check(found)


@pytest.mark.parametrize("path, field", FIELDS)
async def test_hostile_text_in_the_address_of_a_page_adds_no_element_to_it(
    path: str, field: str, harmless: Shapes
) -> None:
    async with a_dashboard() as given:
        filled = await _fill(given, "harmless")
        plain = [(path, await _asked(given, path, filled, field, text)) for text in ("harmless", "7", "two words")]
        found = [(path, await _asked(given, path, filled, field, text)) for text in IN_ADDRESSES]

    assert _shapes(found) - _shapes(plain) - harmless == set()
    _check(found)


async def test_an_element_that_is_not_escaped_would_be_seen(harmless: Shapes) -> None:
    page = read(f'<main class="page-jobs"><img src=x onerror="{RUN}"></main>'.encode())

    assert _shapes([("/jobs", page)]) - harmless == {("/jobs", "img", ("onerror", "src"))}
    with pytest.raises(AssertionError):
        _check([("/jobs", read(b'<a href="javascript:x">x</a>'))])


async def _harmless() -> Shapes:
    async with a_dashboard() as given:
        filled = [await _fill(given, text) for text in HARMLESS]
        filled += [await _fill(given, "harmless", data=data) for data in (b"bytes", b"\xff\x00", b"x" * 100_000)]
        pages = [each async for each in _pages(given, filled)]
    async with a_dashboard() as given:
        empty = [each async for each in _pages(given, [])]
        refused = [(path, read((await given.get("/audit?nonsense=1")).body)) for path in PATHS]
    return _shapes([*pages, *empty, *refused])


async def _fill(given: GivenDashboard, text: str, *, data: bytes | None = None, name: str | None = None) -> Filled:
    zone = None if text in WORST else "UTC"
    return await fill(given.client.store, text, now=given.client.clock.now(), data=data, name=name, zone=zone)


async def _pages(given: GivenDashboard, filled: Sequence[Filled]) -> AsyncGenerator[tuple[str, Element]]:
    for path in PATHS:
        for target in _targets(path, filled):
            yield path, await given.page(target)


async def _regions(given: WatchedDashboard, filled: Sequence[Filled]) -> AsyncGenerator[tuple[str, Element]]:
    for path in PATHS:
        for target in _targets(path, filled):
            async with given.watch(target) as browser:
                await given.clock.let_pass(1)
                told = await browser.change()
            for html in told["regions"].values():
                yield path, read(html.encode())


def _targets(path: str, filled: Sequence[Filled]) -> Iterator[str]:
    """Return the addresses of a page; there is one for each job where it is about one."""
    if "{id:uuid}" in path:
        for each in filled:
            yield from (path.replace("{id:uuid}", each.ids[end]) for end in ("dead", "running", "succeeded"))
    else:
        yield path


async def _asked(given: GivenDashboard, path: str, filled: Filled, field: str, text: str) -> Element:
    [target, *_] = _targets(path, [filled])
    reply = await given.get(f"{target}?{field}={quote(text)}")
    assert reply.status in (200, 422), (reply.status, reply.body[:500])
    return read(reply.body)


def _shapes(found: Iterable[tuple[str, Element]]) -> Shapes:
    return frozenset((path, each.name, tuple(sorted(each.attributes))) for path, page in found for each in page.all())


def _check(found: Iterable[tuple[str, Element]]) -> None:
    """See that all that a page loads, leads to or calls is of this site, that nothing acts by itself or is obeyed."""
    for path, page in found:
        for each in page.all():
            assert not any(name.startswith("on") or name == "style" for name in each.attributes), (path, each)
            for name in ADDRESSES:
                leads = each.attributes.get(name, "/")
                # an empty one is that of the app itself, where it is not mounted below a path
                assert (leads.startswith(("/", "#", "?")) and not leads.startswith("//")) or not leads, (path, leads)
            written = [*each.attributes.values(), *(part for part in each.children if isinstance(part, str))]
            assert [text[:100] for text in written if OBEYED.search(text)] == [], path
            if "data-body" in each.attributes:
                assert isinstance(json.loads(each.attributes["data-body"]), dict)
