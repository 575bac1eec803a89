from io import StringIO

import pytest
from rich.console import Console

from windlass.core.stats import QueueStats
from windlass.demo.live_view import LiveView, panel
from windlass.demo.view import Fact, PlainView, Server, Standing, Timetable

MIDDLE = Standing(
    elapsed=23.4,
    total=60,
    queues=[
        QueueStats(name, pending=120, running=24, scheduled=13, succeeded=12_482, dead=1)
        for name in ("digests", "emails", "reports", "thumbnails")
    ],
    servers=[
        Server(f"server {number}", "working", 1_234, "8 emails, 1 poison, 2 thumbnails") for number in range(9, 15)
    ],
    timetable=Timetable("daily_digest", "*/10 * * * * *", 6.2, 3),
    rates=range(60),
    retried=1_241,
    rescued=112,
)


def terminal(width: int) -> tuple[Console, StringIO]:
    file = StringIO()
    return Console(file=file, width=width, height=24, color_system=None, highlight=False), file


@pytest.mark.parametrize("standing", [Standing(), MIDDLE])
@pytest.mark.parametrize("width", [80, 100])
def test_what_moves_leaves_room_for_the_story_and_never_changes_its_height(width: int, standing: Standing) -> None:
    console, file = terminal(width)

    console.print(panel(standing, width))

    lines = file.getvalue().splitlines()
    assert len(lines) == (16 if standing.queues else 12)
    assert "…" not in file.getvalue()
    assert max(map(len, lines)) <= width


def test_the_live_view_shows_every_number() -> None:
    console, file = terminal(80)

    console.print(panel(MIDDLE, 80))

    shown = file.getvalue()
    for text in ("12,482", "server 14", "2 thumbnails", "*/10 * * * * *", "next in  6 s", "fired 3 times", "57/s"):
        assert text in shown
    assert "1,241 retried, 112 rescued" in shown
    assert "23 s of about 60" in shown


def test_the_live_view_says_where_a_browser_shows_it() -> None:
    console, file = terminal(80)

    console.print(panel(MIDDLE._replace(address="http://127.0.0.1:43997/"), 80))

    assert "browser     http://127.0.0.1:43997/" in file.getvalue()


def test_servers_of_long_ago_are_not_shown() -> None:
    console, file = terminal(80)

    console.print(panel(MIDDLE, 80))

    assert "server 11" not in file.getvalue()


def test_a_live_view_tells_and_concludes() -> None:
    console, file = terminal(200)
    view = LiveView(console)

    view.title("Windlass")
    view.say("server 1 is up.")
    view.show(MIDDLE)
    view.close()
    view.table([Fact("lost", "0", good=True), Fact("dead", "1", "the poison")])
    view.conclude("0 lost.\n  nothing: 0", good=True)

    told = [line.strip() for line in file.getvalue().splitlines()]
    assert "0.0 s  server 1 is up." in told
    assert "dead   1   the poison" in told
    assert "0 lost." in told
    assert "nothing: 0" in told


def test_a_plain_view_tells_the_numbers_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    view = PlainView()

    view.show(MIDDLE._replace(elapsed=5.0))
    view.show(MIDDLE._replace(elapsed=5.1))
    view.show(MIDDLE._replace(elapsed=10.0))

    assert capsys.readouterr().out.count("49,928 jobs done, 96 running, 480 waiting.") == 2
