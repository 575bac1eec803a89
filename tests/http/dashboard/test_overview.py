from datetime import timedelta

import pytest

from tests.http.dashboard.given_dashboard import Element, GivenDashboard, a_dashboard
from tests.http.given_app import LIMITED
from windlass import NewJob
from windlass.api.roles import Role
from windlass.core.looks import ServerRecord
from windlass.core.stats import TimingCount
from windlass.http.dashboard import history
from windlass.http.dashboard.history import FRESH
from windlass.http.dashboard.pages.overview import MOST_QUEUES
from windlass.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


async def work(given: GivenDashboard, queue: str, *, done: int = 0, failed: int = 0, dead: int = 0) -> None:
    client = given.client
    jobs = done + failed + dead
    await client.enqueue_many([NewJob(queue, max_attempts=2) for _ in range(jobs)])
    claims = await client.claim_many([queue], limit=jobs)
    for claim in claims[:done]:
        await client.ack(claim)
    for claim in claims[done : done + failed]:
        await client.nack(claim, "once more")
    for claim in claims[done + failed :]:
        await client.dead_letter(claim, "never")


def figures(page: Element) -> dict[str, str]:
    found = page.one("dl", class_="figures").all("div")
    return {each.one("dt").text: " ".join(told.text for told in each.all("dd")) for each in found}


def chart(page: Element, title: str) -> Element:
    [found] = [each for each in page.all("figure") if each.one("h2").text == title]
    return found


def steps(page: Element, title: str) -> list[str]:
    return [each.text for each in chart(page, title).all("rect", class_="step")]


def rows(page: Element) -> list[list[str]]:
    return [[cell.text for cell in row.all("td")] for row in page.one("table", class_="queues").one("tbody").all("tr")]


async def test_what_there_is_now_is_told_at_the_top(clock: FakeClock) -> None:
    async with a_dashboard(clock=clock) as given:
        await work(given, "mail", done=3, failed=1, dead=2)
        clock.advance(60)
        await work(given, "mail", done=1)
        await given.client.enqueue_many([NewJob("mail"), NewJob("mail"), NewJob("mail", delay=600)])
        await given.client.claim("mail")
        now = clock.now()
        await given.client.store.beat(ServerRecord("a", "a", "h", 1, "1", now, now, queues=("mail",)))

        told = figures(await given.page("/"))

    assert told["Jobs a minute"] == "3 1 in this one so far"
    assert (told["Running"], told["Waiting"], told["Scheduled"], told["Dead"]) == ("1", "2", "1", "2")
    assert (told["Servers live"], told["Oldest waiting for"]) == ("1", "2026-01-01 12:01:00 UTC")


async def test_the_running_minute_goes_on_between_two_readings(clock: FakeClock) -> None:
    async with a_dashboard(clock=clock) as given:
        await work(given, "mail", done=3)
        await given.page("/")
        clock.advance(1)
        await work(given, "mail", done=2)

        between = await given.page("/")
        clock.advance(FRESH)
        after = await given.page("/")

    for page in (between, after):
        assert figures(page)["Jobs a minute"] == "0 5 in this one so far"
    assert after.one("a", class_="lately").attributes["aria-label"].endswith(": 5 succeeded in the last hour")


async def test_charts_tell_what_happened_in_each_minute(clock: FakeClock) -> None:
    async with a_dashboard(clock=clock) as given:
        await work(given, "mail", done=3, failed=1, dead=2)
        minute = clock.now().replace(second=0)
        await given.client.store.write_timings([TimingCount(minute, "mail", "", "ran", 7, 4)])
        clock.advance(60)
        await given.client.enqueue("mail")

        page = await given.page("/")

    assert steps(page, "Throughput")[-3:] == ["0 succeeded", "3 succeeded", "0 succeeded"]
    assert steps(page, "Failures")[-2] == "2 dead, 1 to be tried again"
    assert steps(page, "Latency")[-2] == "waited -, ran 750 ms / 980 ms"
    assert steps(page, "Depth")[-3:] == ["0 unfinished", "1 unfinished", "2 unfinished"]
    assert len(steps(page, "Depth")) == 60
    assert "at most 3" in chart(page, "Throughput").one("svg", role="img").attributes["aria-label"]


@pytest.mark.parametrize("span, step, count", [("1h", 60, 60), ("6h", 300, 72), ("24h", 900, 96)])
async def test_a_longer_span_has_longer_steps(clock: FakeClock, span: str, step: int, count: int) -> None:
    async with a_dashboard(clock=clock) as given:
        await work(given, "mail", done=1)
        clock.advance(timedelta(minutes=20))
        await work(given, "mail", done=1)

        page = await given.page(f"/?range={span}")

    told = steps(page, "Throughput")
    assert chart(page, "Throughput").attributes["data-step"] == str(step)
    assert (len(told), told.count("1 succeeded")) == (count, 2)
    assert page.one("nav", class_="spans").one("a", aria_current="true").text == span


async def test_charts_of_one_queue_leave_the_others_out(clock: FakeClock) -> None:
    async with a_dashboard(clock=clock) as given:
        await work(given, "mail", done=3)
        await work(given, "reports", done=1)
        await given.client.enqueue("reports")

        page = await given.page("/?queue=reports")

    assert page.one("h1").text == "Queue reports"
    assert (steps(page, "Throughput")[-1], steps(page, "Depth")[-1]) == ("1 succeeded", "1 unfinished")
    assert figures(page)["Jobs a minute"] == "0 1 in this one so far"
    assert [row[0] for row in rows(page)] == ["mail", "reports"]
    lately = page.one("tr", data_key="mail").one("a", class_="lately")
    assert lately.attributes["aria-label"] == "Charts of mail: 3 succeeded in the last hour"
    assert lately.all("path")[0].attributes["d"].startswith("M0 20V20h1")


async def test_a_chart_of_nothing_says_so(clock: FakeClock) -> None:
    async with a_dashboard(clock=clock) as given:
        await given.client.enqueue("mail")

        page = await given.page("/")

    assert chart(page, "Failures").one("p", class_="nothing").text == "Nothing yet"
    assert chart(page, "Depth").all("p", class_="nothing") == []


async def test_what_is_still_to_be_read_is_told_of(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    # a store so slow that the last minutes are all that a look has time for
    monkeypatch.setattr(history, "AT_ONCE", 0.0)
    async with a_dashboard(clock=clock) as given:
        await work(given, "mail", done=1)

        page = await given.page("/")

    assert steps(page, "Throughput") == ["not read yet"] * 57 + ["0 succeeded"] * 2 + ["1 succeeded"]
    assert chart(page, "Depth").one("li", class_="unread").text == "older minutes are being read"


async def test_queues_are_listed_by_name_with_what_they_hold() -> None:
    async with a_dashboard() as given:
        await work(given, "mail", done=2, dead=1)
        await given.client.enqueue_many([NewJob("invoices"), NewJob("invoices", delay=60)])
        await given.client.pause("invoices")

        page = await given.page("/")

    invoices, mail = rows(page)
    assert [invoices[place] for place in (0, 1, 3, 4, 5, 6)] == ["invoices paused", "1", "1", "0", "0", "0"]
    assert [mail[place] for place in (0, 1, 2, 3, 4, 5, 6)] == ["mail", "0", "\u2013", "0", "0", "1", "2"]
    links = [each.attributes["href"] for each in page.one("tr", data_key="mail").all("a")]
    assert links == ["/jobs?queue=mail", "/dead?queue=mail", "/?range=1h&queue=mail"]
    calls = [each.attributes["data-call"] for each in page.one("table").all("button")]
    assert calls == ["/queues/resume", "/queues/pause"]


async def test_who_may_only_view_is_offered_no_button() -> None:
    async with a_dashboard() as given:
        await given.client.enqueue_many([NewJob("held"), NewJob("mail")])
        await given.client.pause("held")

        page = await given.page("/", who=Role.VIEW)

    assert page.one("main").all("button") == []


async def test_of_very_many_queues_the_first_are_listed_and_others_found_by_their_beginning() -> None:
    async with a_dashboard() as given:
        await given.client.enqueue_many([NewJob(f"q{number:04}") for number in range(300)])

        first, found = await given.page("/"), await given.page("/?prefix=q029")
        none = await given.page("/?prefix=zz")

    assert (len(rows(first)), rows(first)[0][0]) == (MOST_QUEUES, "q0000")
    assert first.one("p", class_="more").text.startswith("The first 100 of 300 queues")
    assert [row[0] for row in rows(found)] == [f"q029{number}" for number in range(10)]
    assert found.one("input", id="prefix").attributes["value"] == "q029"
    assert "No queue begins with zz" in none.one("main").text


async def test_what_may_need_somebody_is_told_first(clock: FakeClock) -> None:
    async with a_dashboard(clock=clock) as given:
        await given.client.enqueue_many([NewJob("held"), NewJob("left")])
        await given.client.pause("held")
        now = clock.now()
        await given.client.store.beat(ServerRecord("a", "worker-1", "h", 1, "1", now, now, queues=("mail",)))
        clock.advance(90)

        told = [each.text for each in (await given.page("/")).one("details", class_="concerns").all("li")]
        of_one = (await given.page("/?queue=held")).one("details", class_="concerns").all("li")
        viewed = (await given.page("/", who=Role.VIEW)).one("details", class_="concerns")

    assert [" ".join(each.split()[:4]) for each in told] == [
        "Paused held : 1",
        "Nobody works on left",
        "Silent worker-1 was last",
    ]
    assert len(of_one) == 1
    assert viewed.one("summary").text == "3 things worth a look"
    assert viewed.all("button") == []


async def test_nothing_needs_a_look_where_all_is_worked_on() -> None:
    async with a_dashboard() as given:
        await work(given, "mail", done=1)

        page = await given.page("/")

    assert page.one(class_="concerns").text == "No queue is held up, and no server is silent."


async def test_the_first_lines_of_code_name_the_store_only_where_its_url_is_known() -> None:
    async with a_dashboard() as given:
        named = GivenDashboard(given.client, store="the jobs of the shop")
        known, unknown = [(await each.page("/")).one(class_="empty").text for each in (given, named)]
        await named.app.close()

    assert 'windlass.App("memory://")' in known
    assert 'windlass.App("sqlite:///jobs.db")' in unknown


async def test_a_store_without_jobs_says_how_to_enqueue_the_first() -> None:
    async with a_dashboard() as given:
        page = await given.page("/")

    assert "windlass enqueue greet" in page.one(class_="empty").text
    assert (page.all("figure"), page.all("table"), page.all("dl", class_="figures")) == ([], [], [])


async def test_who_is_limited_to_a_queue_sees_nothing_of_others(clock: FakeClock) -> None:
    async with a_dashboard(clock=clock) as given:
        await work(given, "mine", done=1)
        await work(given, "secret", done=5, dead=5)
        await given.page("/?queue=secret")

        page = await given.page("/", who=LIMITED)
        other = await given.page("/?queue=secret", who=LIMITED)

    assert [row[0] for row in rows(page)] == ["mine"]
    assert (steps(page, "Throughput")[-1], figures(page)["Dead"]) == ("1 succeeded", "0")
    assert set(steps(other, "Throughput")) == {"0 succeeded"}
    assert "There is no queue secret" in other.one("main").text


@pytest.mark.parametrize("query", ["range=2h", "queue=" + "x" * 201, "until=now", "range=1h&range=6h"])
async def test_what_cannot_be_asked_is_refused(query: str) -> None:
    async with a_dashboard() as given:
        assert (await given.get(f"/?{query}")).status == 422
