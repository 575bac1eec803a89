"""What the pages on the dashboard say, held against the code, and the pictures that they show."""

import re
import shlex
from inspect import signature
from pathlib import Path
from typing import Final

import pytest

from docs.screenshots import LARGEST, PICTURES, shots
from docs.staged_shop import StagedShop
from tests.docs.pages import DOCS, rows, section, text_of
from tests.http.asgi import ask
from tests.http.dashboard.given_dashboard import PAGE, read
from windlass.api.roles import Role
from windlass.cli.dashboard import dashboard
from windlass.http import make_app, make_dashboard
from windlass.http.auth import NoAuth
from windlass.http.dashboard.app import Dashboard
from windlass.http.dashboard.live import MOST_LOOKS
from windlass.http.dashboard.pages.table import VIEWS
from windlass.http.sessions import LIFE
from windlass.http.streaming import MOST_STREAMS

WATCHING: Final = "howto/watch-in-the-browser.md"
SAFE: Final = "explanation/how-the-dashboard-is-safe.md"
STATIC: Final = DOCS.parent / "src" / "windlass" / "http" / "dashboard" / "static"
COMMAND: Final = re.compile(r"^(?:\$ )?windlass dashboard (.*?[^\\])$", re.MULTILINE | re.DOTALL)
PICTURE: Final = re.compile(r"!\[[^\]]+\]\(([^)]+\.png)\)")
JOB: Final = "0199a3c2-7f4e-7000-8000-000000000000"


def test_dashboard_understands_every_command_of_the_page() -> None:
    commands = [shlex.split(each.replace("\\\n", " ")) for each in COMMAND.findall(text_of(WATCHING))]

    assert [dashboard.make_context("windlass dashboard", words).params["store"] for words in commands] == [
        "sqlite:///jobs.db",
        "postgres://db/shop",
    ]


def test_the_page_has_every_page() -> None:
    told = [name for name, *_ in rows(WATCHING, "page")]

    assert len(told) == len(VIEWS)
    assert {"Overview", "Jobs", "Dead", "Schedules", "Servers", "Audit"} < set(told)


def test_the_page_has_the_keys_of_the_code() -> None:
    keys = (STATIC / "keys.js").read_text(encoding="utf-8")
    [leading] = re.findall(r"const pages = \{(.*)\};", keys)
    told = {key for cell, _ in rows(WATCHING, "key") for key in re.findall(r"`(.+?)`", f"`{cell}`")}

    assert re.findall(r"(\w): \"", leading) == re.findall(r"`(\w)`", section(WATCHING, "Keys"))[1:7]
    assert {"/", "t", "?"} <= set(re.findall(r'key === "(.)"', keys)) & told


def test_the_reference_has_every_argument_of_what_is_mounted() -> None:
    told = {name for name, *_ in rows("reference/http-api.md", "argument")}

    assert told == {*signature(make_app).parameters, *signature(make_dashboard).parameters} - {"client"}


@pytest.mark.parametrize("role", Role)
def test_the_page_has_what_a_role_sees(role: Role) -> None:
    [told] = [text for names, text in rows(WATCHING, "role") if role in re.findall(r"\w+", names)]
    seen = {view.name for view in VIEWS if role in view.roles or role is Role.ADMIN}
    everything = {view.name for view in VIEWS}

    match told.partition(";")[0].partition(",")[0]:
        case "everything" | "the same":
            assert seen == everything
        case "everything but the audit":
            assert seen == everything - {"audit"}
        case _:
            assert seen == {"job"}


def test_the_pages_have_the_limits_of_the_code() -> None:
    calls = (STATIC / "calls.js").read_text(encoding="utf-8")

    assert (LIFE, MOST_LOOKS, MOST_STREAMS) == (12 * 60 * 60, 8, 1_000)
    assert "const UNDO = 5000;" in calls
    for text, page in (("for twelve hours", WATCHING), ("five seconds", WATCHING), ("after twelve hours", SAFE)):
        assert text in text_of(page).replace("\n", " ")
    assert "beyond eight different pages" in text_of(SAFE)
    assert "bounded at a thousand" in text_of(SAFE)


def test_every_page_has_a_picture_that_is_there_and_small() -> None:
    wanted = shots(JOB)
    taken = {file.name for file in PICTURES.glob("*.png")}

    assert {shot.path.split("/")[1] for shot in wanted} == {view.path.split("/")[1] for view in VIEWS}
    assert taken == {f"{shot.name}.png" for shot in wanted}
    assert max(file.stat().st_size for file in PICTURES.iterdir()) <= LARGEST


@pytest.mark.parametrize("page", [DOCS.parent / "README.md", DOCS / WATCHING], ids=["readme", "howto"])
def test_the_pictures_that_are_shown_are_there(page: Path) -> None:
    shown = PICTURE.findall(page.read_text(encoding="utf-8"))

    assert shown
    assert all((page.parent / picture).is_file() for picture in shown)


@pytest.mark.slow
async def test_the_shop_of_the_pictures_fills_every_page() -> None:
    shop = StagedShop()
    async with shop.client:
        await shop.play()
        app = Dashboard(shop.client, auth=NoAuth())
        for shot in shots(JOB):
            if shot.name.startswith("job") and shot.name != "jobs":
                continue
            page = read((await ask(app, "GET", shot.path, headers=[PAGE])).body)

            assert page.all("h1"), shot
            assert page.all(class_="empty") == [], shot
        await app.close()
