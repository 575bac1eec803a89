"""Passwords and all else out of files, read as libpq reads them: what it makes of a file is asked of libpq itself."""

import asyncio
import logging
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import windlass
from tests.postgres.cluster import schema_of
from tests.postgres.guarded import GuardedCluster
from tests.stores.postgres.test_login import PATIENCE, REFUSED, new_user, works
from windlass import InvalidURL, StoreUnavailable
from windlass.stores.postgres.hosts import Host
from windlass.stores.postgres.password_file import password_of

pytestmark = pytest.mark.usefixtures("nothing_from_outside")

PASSWORD: Final = r"a:b\c%d #e "  # noqa: S105 - what has to be escaped here or there
ESCAPED: Final = r"a\:b\\c%d #e "


class Place(NamedTuple):
    """A role, and where its store is; the URL has no password."""

    url: str
    user: str
    port: int

    def line(self, password: str = ESCAPED) -> str:
        return f"localhost:{self.port}:postgres:{self.user}:{password}\n"


@pytest.fixture
def place(guarded: GuardedCluster) -> Place:
    user = new_user()
    parts = urlsplit(guarded.new_url(user, PASSWORD))
    return Place(parts._replace(netloc=f"{user}@localhost:{guarded.port}").geturl(), user, guarded.port)


def write(file: Path, text: str, mode: int = 0o600) -> Path:
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)
    return file


def libpq_comes_in(url: str, **more: str) -> bool:
    try:
        psycopg.connect(make_conninfo(url.partition("?")[0], **more)).close()
    except psycopg.OperationalError:
        return False
    return True


async def comes_in(url: str) -> bool:
    try:
        async with asyncio.timeout(PATIENCE), windlass.connect(url):
            return True
    except StoreUnavailable as error:
        if REFUSED in str(error):
            return False
        raise


@pytest.mark.parametrize(
    "text",
    [
        "LINE\n",
        "LINE",
        "LINE\r\n",
        "# a comment\n\nno line at all\na:b\nLINE\n",
        f"*:*:*:*:{ESCAPED}\n",
        f"elsewhere:*:*:*:wrong\n*:1:*:*:wrong\n*:*:other:*:wrong\n*:*:*:other:wrong\nlocal*:*:*:*:wrong\n*:*:*:*:{ESCAPED}",
        rf"localhost:*:post\gres:*:{ESCAPED}",
        "LINE:more\n",
    ],
)
async def test_a_file_that_holds_the_password_lets_in_here_as_with_libpq(
    place: Place, tmp_path: Path, text: str
) -> None:
    file = write(tmp_path / "passwords", text.replace("LINE", place.line().removesuffix("\n")))

    assert libpq_comes_in(place.url, passfile=str(file))
    assert await comes_in(f"{place.url}&passfile={file}")


@pytest.mark.parametrize(
    "text",
    [
        "*:*:*:*:wrong\nLINE\n",
        f"*:*:*:*:{PASSWORD}\n",
        f"local*:*:*:*:{ESCAPED}\n",
        "*:*:*:*:\\\n",
        f"*:*:*:{ESCAPED}",
        "",
    ],
)
async def test_a_file_that_does_not_hold_it_does_not_here_as_with_libpq(
    place: Place, tmp_path: Path, text: str
) -> None:
    file = write(tmp_path / "passwords", text.replace("LINE", place.line().removesuffix("\n")))

    assert not libpq_comes_in(place.url, passfile=str(file))
    assert not await comes_in(f"{place.url}&passfile={file}")


async def test_a_file_of_passwords_is_found_where_libpq_finds_it(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / ".pgpass", place.line())
    assert await comes_in(place.url)

    write(tmp_path / ".pgpass", place.line("wrong"))
    monkeypatch.setenv("PGPASSFILE", str(write(tmp_path / "named", place.line())))
    assert await comes_in(place.url)

    write(tmp_path / "named", place.line("wrong"))
    assert await comes_in(f"{place.url}&passfile={write(tmp_path / 'of the URL', place.line())}".replace(" ", "%20"))


async def test_a_file_that_others_may_read_is_not_used_and_that_is_said(
    place: Place, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = write(tmp_path / "open", place.line(), 0o640)

    assert not await comes_in(f"{place.url}&passfile={file}")

    assert f"{file}: it is not used" in caplog.text
    assert "chmod 0600" in caplog.text
    assert "a:b" not in caplog.text


async def test_a_password_that_changes_is_read_anew_at_every_connection(
    guarded: GuardedCluster, place: Place, tmp_path: Path
) -> None:
    file = write(tmp_path / "passwords", place.line())
    async with windlass.connect(f"{place.url}&passfile={file}") as client:
        assert await works(client)

        guarded.set_password(place.user, "the next")
        guarded.end_sessions(place.user)
        with pytest.raises(StoreUnavailable, match=REFUSED):
            await client.stats()

        write(file, place.line("the next"))
        assert await works(client)


@pytest.mark.parametrize(
    "dsn, host, wanted",
    [
        ("postgresql://ann@one:1,two:2/shop", Host("two", 2), "two:2:shop:ann"),
        ("postgresql://ann@one,two/shop?port=3", Host(), "two:3:shop:ann"),
        ("postgresql://ann@[::1]:4/shop", Host(), r"\:\:1:4:shop:ann"),
        ("postgresql://ann@DB.example/shop", Host(), "DB.example:5432:shop:ann"),
        ("postgresql:///shop?host=/run/x&user=ann", Host(), "localhost:5432:shop:ann"),
        ("postgresql:///shop?host=/run/x&user=ann", Host(), "/run/x:5432:shop:ann"),
        ("postgresql:///shop?host=a,b&port=1,2&user=ann", Host(), "b:2:shop:ann"),
        ("postgresql://ann@db", Host(), "db:5432:ann:ann"),
        ("postgresql://%C3%A5%3A@db/sm%C3%B6r", Host(), r"db:5432:smör:å\:"),
        ("postgresql:///?dbname=shop", Host(), "of-the-variable:7:shop:me"),
    ],
)
def test_a_line_is_looked_for_by_all_that_a_url_or_the_environment_says(
    dsn: str, host: Host, wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / ".pgpass", f"{wanted}:found\n")
    if "variable" in wanted:
        for name, value in {"PGHOST": "of-the-variable", "PGPORT": "7", "PGUSER": "me"}.items():
            monkeypatch.setenv(name, value)

    assert password_of(dsn, host) == "found"
    assert password_of(dsn.replace("shop", "x").replace("ann", "y").replace("sm", "z"), host) == ""


def service(place: Place, more: str = "") -> str:
    server = f"[other]\nhost=elsewhere\n\n# ours\n[shop]\n host=localhost\nport={place.port}\ndbname=postgres\n"
    return f"{server}user={place.user}\npassword={PASSWORD.rstrip()}\nconnect_timeout=5\n{more}[last]\nuser=nobody\n"


@pytest.fixture
def at_service(guarded: GuardedCluster, place: Place) -> str:
    """The URL of a store that says nothing but its schema."""
    # libpq leaves out spaces at the end of a line
    guarded.set_password(place.user, PASSWORD.rstrip())
    return f"postgres://?schema={schema_of(place.url)}"


async def test_a_service_is_read_as_libpq_reads_it(
    place: Place, at_service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / ".pg_service.conf", service(place))
    assert await comes_in(f"{at_service}&service=shop")
    assert libpq_comes_in("postgres://", service="shop")

    monkeypatch.setenv("PGSERVICE", "shop")
    assert await comes_in(at_service)
    assert libpq_comes_in("postgres://")

    monkeypatch.setenv("PGSERVICEFILE", str(write(tmp_path / "named", service(place).replace("[shop]", "[named]"))))
    assert await comes_in(f"{at_service}&service=named")
    assert libpq_comes_in("postgres://", service="named")


async def test_what_the_url_says_goes_before_the_service(place: Place, at_service: str, tmp_path: Path) -> None:
    write(tmp_path / ".pg_service.conf", service(place).replace(f"user={place.user}", "user=nobody"))

    assert await comes_in(f"{at_service}&service=shop&user={place.user}")
    assert not await comes_in(f"{at_service}&service=shop")


async def test_a_service_of_the_whole_machine_comes_last(
    place: Place, at_service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGSYSCONFDIR", str(tmp_path / "etc"))
    (tmp_path / "etc").mkdir()
    write(tmp_path / "etc" / "pg_service.conf", service(place))
    assert await comes_in(f"{at_service}&service=shop")

    write(tmp_path / ".pg_service.conf", service(place).replace(f"user={place.user}", "user=nobody"))
    assert not await comes_in(f"{at_service}&service=shop")


@pytest.mark.parametrize(
    "text, told",
    [
        ("", r"no service 'shop' in .*\.pg_service\.conf"),
        ("[shap]\nhost=localhost\n", "no service 'shop'"),
        ("[shop]\nhostaddr=127.0.0.1\npassword=canary\n", "says 'hostaddr', which a URL cannot"),
        ("[shop]\npassword=canary\nchannel_binding=require\n", "channel_binding=require"),
        ("[shop]\npassword=canary\nport=none\n", "port=1 to 65535"),
    ],
)
def test_a_service_that_cannot_be_used_is_refused_at_once(
    text: str, told: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / ".pg_service.conf", text)

    with caplog.at_level(logging.DEBUG), pytest.raises(InvalidURL, match=told) as refused:
        windlass.connect("postgres://?schema=jobs&service=shop")

    assert "canary" not in repr(refused.value) + caplog.text
