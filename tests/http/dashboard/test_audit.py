from tests.http.asgi import ask
from tests.http.dashboard.given_dashboard import a_dashboard
from windlass.api.roles import Role
from windlass.core.looks import AuditEntry


async def test_what_people_did_is_there_the_newest_first() -> None:
    async with a_dashboard() as given:
        await given.done("/queues/pause", {"queue": "mail"}, who=Role.OPERATE)
        await given.done("/queues/resume", {"queue": "mail"})

        rows = (await given.page("/audit")).one("tbody").all("tr")

    said = [[cell.text for cell in row.all("td")][1:4] for row in rows]
    assert said == [["admin", "resume", "mail"], ["operate", "pause", "mail"]]


async def test_it_says_what_will_be_there_when_there_is_nothing() -> None:
    async with a_dashboard() as given:
        page = await given.page("/audit")

    assert "Nobody has changed anything yet" in page.one(class_="empty").text


async def test_more_entries_than_were_asked_for_are_told_of() -> None:
    async with a_dashboard() as given:
        for _ in range(3):
            await given.done("/queues/pause", {"queue": "mail"})

        page = await given.page("/audit?limit=2")

    assert len(page.one("tbody").all("tr")) == 2
    assert page.one(class_="more").one("a").attributes["href"] == "/audit?limit=1000"


async def test_who_may_only_view_is_told_so_on_a_page() -> None:
    async with a_dashboard() as given:
        refused = await given.get("/audit", who=Role.VIEW)
        unknown = await given.get("/audit?limit=2&page=1", who=None)
        by_json = await ask(given.app, "GET", "/audit")

    assert (refused.status, b"<h1>Not allowed</h1>" in refused.body) == (403, True)
    assert (unknown.status, unknown.header("location")) == (303, "/login?next=%2Faudit%3Flimit%3D2%26page%3D1")
    assert (by_json.status, by_json.error) == (401, "not_allowed")


async def test_what_was_changed_and_is_still_there_can_be_opened() -> None:
    async with a_dashboard() as given:
        job = await given.client.enqueue("mail")
        now = given.client.clock.now()
        done = [
            ("cancel", job.id),
            ("delete", job.id),
            ("retry", "12 jobs"),
            ("resume", "mail"),
            ("pause schedule", "a/b"),
        ]
        await given.client.store.write_audit([AuditEntry(now, "me", *each, {}) for each in done])

        rows = (await given.page("/audit")).one("tbody").all("tr")

    pages = {row.all("td")[2].text: [link.attributes["href"] for link in row.all("a")] for row in rows}
    assert pages == {
        "cancel": [f"/jobs/{job.id}"],
        "delete": [],
        "retry": [],
        "resume": ["/jobs?queue=mail"],
        "pause schedule": ["/schedules?id=a%2Fb"],
    }
