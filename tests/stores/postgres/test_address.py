"""What a postgres:// URL says, and how the driver reads what is passed on to it."""

import inspect
from typing import Any
from urllib.parse import quote

import pytest
from asyncpg import connect_utils
from hypothesis import given
from hypothesis import strategies as st

import windlass
from windlass import InvalidURL
from windlass.connect import migrator, open_store
from windlass.store_url import parse
from windlass.stores.postgres.address import read_address
from windlass.stores.postgres.options import Options
from windlass.stores.postgres.session import open_session

SECRET = "hunter2-canary"  # noqa: S105 - it is to be looked for


def read(url: str) -> Options:
    parts = parse(url, ["postgres", "postgresql"])
    return read_address(parts.host, parts.path, parts.options)


@pytest.fixture(autouse=True)
def _nothing_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE", "PGSERVICE", "PGSSLMODE", "PGPASSFILE"):
        monkeypatch.delenv(name, raising=False)


def as_the_driver_reads(dsn: str) -> tuple[list[Any], Any]:
    """Return the addresses and the rest of what asyncpg makes of `dsn`."""
    take = vars(connect_utils)["_parse_connect_dsn_and_args"]
    addresses, parameters = take(**{**dict.fromkeys(inspect.signature(take).parameters), "dsn": dsn})
    return list(addresses), parameters


@pytest.mark.parametrize(
    "url, addresses, user, password, database",
    [
        ("postgres://ann:pw@db/shop", [("db", 5432)], "ann", "pw", "shop"),
        ("postgresql://ann@db:6432/shop", [("db", 6432)], "ann", None, "shop"),
        ("postgres://ann@db", [("db", 5432)], "ann", None, "ann"),
        ("postgres://ann@db/", [("db", 5432)], "ann", None, "ann"),
        ("postgres://ann:p%40%2F%3A%23%3F%25@db/shop", [("db", 5432)], "ann", "p@/:#?%", "shop"),
        ("postgres://ann:p@ss@db/shop", [("db", 5432)], "ann", "p@ss", "shop"),
        ("postgres://ann:a:b@db/shop", [("db", 5432)], "ann", "a:b", "shop"),
        ("postgres://%C3%A5sa:%C3%A9@db/sm%C3%B6r", [("db", 5432)], "åsa", "é", "smör"),
        ("postgres://ann@[::1]:6432/shop", [("::1", 6432)], "ann", None, "shop"),
        ("postgres://ann@[::1],db:1/shop", [("::1", 5432), ("db", 1)], "ann", None, "shop"),
        ("postgres://ann@a,b:6432,c/shop", [("a", 5432), ("b", 6432), ("c", 5432)], "ann", None, "shop"),
        ("postgres:///shop?host=/run/x&user=ann", ["/run/x/.s.PGSQL.5432"], "ann", None, "shop"),
        ("postgres://ann@/shop?host=/run/x&port=6432", ["/run/x/.s.PGSQL.6432"], "ann", None, "shop"),
        ("postgres://ann@%2Frun%2Fx/shop", ["/run/x/.s.PGSQL.5432"], "ann", None, "shop"),
        ("postgres://ann@/?dbname=shop&host=a,b&port=1,2", [("a", 1), ("b", 2)], "ann", None, "shop"),
        ("postgres://db/shop?user=ann&password=p%2Bw", [("db", 5432)], "ann", "p+w", "shop"),
    ],
)
def test_the_driver_reads_what_the_url_means(
    url: str, addresses: list[Any], user: str, password: str | None, database: str
) -> None:
    read_by_driver, parameters = as_the_driver_reads(read(f"{url}{'&' if '?' in url else '?'}passfile=none").dsn)

    assert read_by_driver == addresses
    assert (parameters.user, parameters.password, parameters.database) == (user, password, database)


@given(st.text(min_size=1).filter(lambda text: "\0" not in text), st.text(min_size=1))
def test_any_password_and_user_that_are_quoted_come_through(user: str, password: str) -> None:
    url = f"postgres://{quote(user, safe='', errors='replace')}:{quote(password, safe='', errors='replace')}@db/shop"

    _, parameters = as_the_driver_reads(read(url).dsn)

    assert quote(parameters.user, safe="", errors="replace") == quote(user, safe="", errors="replace")
    assert quote(parameters.password, safe="", errors="replace") == quote(password, safe="", errors="replace")


def test_what_the_driver_knows_is_passed_on_and_what_is_ours_is_not() -> None:
    options = read(
        "postgres://db/shop?schema=jobs&timeout=5&application_name=my%20app&options=-c%20jit%3Don&sslmode=disable"
    )

    _, parameters = as_the_driver_reads(options.dsn)

    assert parameters.server_settings == {"application_name": "my app", "options": "-c jit=on"}
    assert parameters.ssl is False
    assert (options.schema, options.timeout) == ("jobs", 5.0)


def test_without_options_a_store_is_as_careful_as_it_can_be() -> None:
    options = read("postgres://db/shop")

    assert (options.schema, options.notify, options.create, options.migrate) == (None, True, True, False)
    assert (options.timeout, options.connections, options.pooler) == (10.0, 8, "auto")


def test_every_option_of_ours_is_read() -> None:
    options = read(
        "postgres://db/shop?schema=Jobs_2&notify=off&create=no&migrate=yes&timeout=0.5&connections=20&pooler=transaction"
    )

    assert (options.schema, options.notify, options.create, options.migrate) == ("Jobs_2", False, False, True)
    assert (options.timeout, options.connections, options.pooler) == (0.5, 20, "transaction")


def test_the_option_of_managed_databases_is_left_out() -> None:
    assert "channel_binding" not in read("postgres://db/shop?channel_binding=prefer").dsn


WRONG = [
    ("postgres://db/shop?shema=x", "did you mean 'schema'"),
    ("postgres://db/shop?schema=", "'schema' of the postgres:// URL is empty"),
    ("postgres://db/shop?schema=a-b", "1 to 63 ASCII letters, digits or _"),
    ("postgres://db/shop?schema=a%22b", "1 to 63 ASCII letters"),
    ("postgres://db/shop?schema=%C3%A5", "1 to 63 ASCII letters"),
    (f"postgres://db/shop?schema={'a' * 64}", "1 to 63 ASCII letters"),
    ("postgres://db/shop?notify=yes", "notify=on|off"),
    ("postgres://db/shop?create=true", "create=yes|no"),
    ("postgres://db/shop?timeout=0", "timeout=0.1 to 60, in seconds, not '0'"),
    ("postgres://db/shop?timeout=61", "timeout=0.1 to 60"),
    ("postgres://db/shop?timeout=nan", "timeout=0.1 to 60"),
    ("postgres://db/shop?timeout=1e2", "timeout=0.1 to 60"),
    ("postgres://db/shop?timeout=-1", "timeout=0.1 to 60"),
    ("postgres://db/shop?connections=0", "connections=1 to 1000"),
    ("postgres://db/shop?connections=1001", "connections=1 to 1000"),
    (f"postgres://db/shop?connections={'1' * 5000}", "connections=1 to 1000"),
    ("postgres://db/shop?connections=%D9%A1", "connections=1 to 1000"),
    ("postgres://db/shop?pooler=session", "pooler=auto|none|transaction"),
    ("postgres://db/shop?sslmode=on", "sslmode=disable|"),
    ("postgres://db/shop?target_session_attrs=standby", "any|primary|read-write"),
    ("postgres://db/shop?channel_binding=require", "sslmode=verify-full"),
    ("postgres://db/shop/more", "one database"),
    ("postgres://db/sh%00op", "one database"),
    ("postgres://db:port/shop", "host:5432"),
    ("postgres://db:0/shop", "host:5432"),
    ("postgres://db:99999/shop", "host:5432"),
    ("postgres://a,,b/shop", "host:5432"),
    ("postgres://a:1:2/shop", "host:5432"),
    ("postgres:///shop?host=db&port=x", "port=1 to 65535"),
    ("postgres://db/shop?host=other", "host of the postgres:// URL is given twice"),
    ("postgres://ann@db/shop?user=ben", "user of the postgres:// URL is given twice"),
    ("postgres://db/shop?dbname=other", "dbname of the postgres:// URL is given twice"),
    (f"postgres://ann:{SECRET}/x@db/shop", "'%2F' for '/'"),
    (f"postgres://ann:{SECRET}#x@db/shop", "%23"),
    (f"postgres://ann:{SECRET}?x@db/shop", "name=value"),
    (f"postgres://ann:{SECRET}@db:x/shop", "host:5432"),
    (f"postgres://ann:{SECRET}@db/shop?password={SECRET}", "password of the postgres:// URL is given twice"),
    (f"postgres://db/shop?password={SECRET}&password={SECRET}", "twice"),
    (f"postgres://db/shop?pasword={SECRET}", "did you mean 'password'"),
]


@pytest.mark.parametrize("url, advice", WRONG)
def test_a_wrong_url_is_refused_at_once_with_advice_and_without_its_password(url: str, advice: str) -> None:
    for take in (windlass.connect, open_store, migrator):
        with pytest.raises(InvalidURL) as refused:
            take(url)

        assert advice in str(refused.value)
        assert SECRET not in repr(refused.value)
        assert SECRET not in repr(refused.value.__cause__)


@pytest.mark.parametrize(
    "url", [f"postgres://ann:{SECRET}@db/shop", f"postgres://ann@db/shop?password={SECRET}&sslpassword={SECRET}"]
)
def test_nothing_of_a_store_shows_its_password(url: str) -> None:
    parts = parse(url, ["postgres"])
    shown = [parts, read(url), read(url).where, open_store(url), migrator(url), windlass.connect(url)]

    assert [each for each in map(repr, shown) if SECRET in each] == []


async def test_what_is_said_of_a_server_that_is_not_there_shows_no_password(caplog: pytest.LogCaptureFixture) -> None:
    url = f"postgres://ann:{SECRET}@127.0.0.1:1/shop?timeout=0.5"
    with caplog.at_level("DEBUG"), pytest.raises(windlass.StoreUnavailable) as refused:
        await windlass.connect(url).open()

    assert SECRET not in repr(refused.value)
    assert SECRET not in repr(refused.value.__cause__)
    assert SECRET not in caplog.text


@pytest.mark.parametrize("url, name", [("schema", "windlass"), ("schema", "my app"), ("pooled_schema", "my app")])
async def test_sessions_go_by_the_name_that_the_url_gives(url: str, name: str, request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue(url)
    given = "" if name == "windlass" else f"&application_name={quote(name)}"

    session = await open_session(read(url + given), timeout=30)
    shown = await session.connection.fetchval("select current_setting('application_name')")
    await session.close()

    assert shown == name
