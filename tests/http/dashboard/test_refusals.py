"""What a browser is told that is refused."""

import pytest

from tests.http.asgi import ask
from tests.http.dashboard.given_dashboard import PAGE, a_dashboard, read
from tests.http.given_app import secret_of
from tests.http.given_tokens import bearer
from windlass.api.roles import Role
from windlass.http.dashboard.refusals import NO_PAGE


@pytest.mark.parametrize(
    "root, wanted",
    [
        ("/jobs-of-ours", "/jobs-of-ours/login"),
        ("/ä", "/%C3%A4/login"),
        ("/ж", "/%D0%B6/login"),
        ("/a\r\nb", "/a%0D%0Ab/login"),
    ],
)
async def test_whoever_is_not_known_is_led_to_the_login_wherever_it_is_mounted(root: str, wanted: str) -> None:
    async with a_dashboard() as given:
        reply = await given.get(f"{root}/jobs?state=dead", who=None, root_path=root)

    assert (reply.status, reply.header("location")) == (303, f"{wanted}?next=%2Fjobs%3Fstate%3Ddead")


async def test_an_address_without_end_is_not_carried_through_the_login() -> None:
    async with a_dashboard() as given:
        reply = await given.get(f"/jobs?text={'a' * 50_000}", who=None)

    assert (reply.status, reply.header("location")) == (303, "/login")


@pytest.mark.parametrize("path", ["/nowhere", "/jobs/7", "/static/nothing.js", "//elsewhere"])
async def test_a_page_that_is_not_there_says_so_in_words_for_people(path: str) -> None:
    async with a_dashboard() as given:
        reply = await given.get(path)

    assert reply.status == 404
    assert NO_PAGE in read(reply.body).text


@pytest.mark.parametrize("path", ["/audit?limit=0", "/?range=year", "/dead?before=-1", "/servers?nonsense=1"])
async def test_what_a_page_cannot_be_asked_for_is_not_looked_up_in_the_api(path: str) -> None:
    async with a_dashboard() as given:
        reply = await given.get(path)

    assert reply.status == 422
    assert "Mend the address" in read(reply.body).text
    assert b"openapi" not in reply.body


@pytest.mark.parametrize("method, accept", [("POST", "text/html"), ("HEAD", "text/html"), ("GET", "*/*")])
async def test_whoever_asks_for_no_page_is_told_by_json(method: str, accept: str) -> None:
    async with a_dashboard() as given:
        headers = [(PAGE[0], accept), bearer(secret_of(Role.ADMIN))]
        reply = await ask(given.app, method, "/nowhere", headers=headers)

    assert (reply.status, reply.header("content-type")) == (404, "application/json")
