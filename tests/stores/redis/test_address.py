"""What a redis:// URL says, and what is said of a wrong one."""

from typing import Any, Final
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

import windlass
from windlass import InvalidURL
from windlass.connect import migrator, open_store
from windlass.store_url import parse
from windlass.stores.redis.address import read_address
from windlass.stores.redis.options import Options

SECRET: Final = "hunter2-canary"  # noqa: S105 - it is to be looked for
SCHEMES: Final = ("redis", "rediss", "redis+sentinel", "redis+cluster")


def read(url: str) -> Options:
    parts = parse(url, SCHEMES)
    return read_address(parts.scheme, parts.host, parts.path, parts.options)


@pytest.mark.parametrize(
    "url, form, places, user, password, database",
    [
        ("redis://", "single", [("localhost", 6379)], None, None, 0),
        ("redis://db", "single", [("db", 6379)], None, None, 0),
        ("redis://db/", "single", [("db", 6379)], None, None, 0),
        ("redis://db:7000/3", "single", [("db", 7000)], None, None, 3),
        ("redis:///15", "single", [("localhost", 6379)], None, None, 15),
        ("rediss://db", "single", [("db", 6379)], None, None, 0),
        ("redis://:pw@db", "single", [("db", 6379)], None, "pw", 0),
        ("redis://ann:pw@db/1", "single", [("db", 6379)], "ann", "pw", 1),
        ("redis://ann@db", "single", [("db", 6379)], "ann", None, 0),
        ("redis://ann:p%40%2F%3A%23%3F%25@db", "single", [("db", 6379)], "ann", "p@/:#?%", 0),
        ("redis://ann:p@ss@db", "single", [("db", 6379)], "ann", "p@ss", 0),
        ("redis://ann:a:b@db", "single", [("db", 6379)], "ann", "a:b", 0),
        ("redis://%C3%A5sa:%C3%A9@db", "single", [("db", 6379)], "åsa", "é", 0),
        ("redis://[::1]", "single", [("::1", 6379)], None, None, 0),
        ("redis://ann:pw@[fe80::1%25eth0]:7000/2", "single", [("fe80::1%eth0", 7000)], "ann", "pw", 2),
        ("redis://my_cache-1.example.org./0", "single", [("my_cache-1.example.org.", 6379)], None, None, 0),
        ("redis://b%C3%BCcher.example", "single", [("bücher.example", 6379)], None, None, 0),
        ("redis+sentinel://a/jobs", "sentinel", [("a", 26379)], None, None, 0),
        ("redis+sentinel://a:1,b,[::1]:2/jobs/4", "sentinel", [("a", 1), ("b", 26379), ("::1", 2)], None, None, 4),
        ("redis+sentinel://ann:pw@a,b/jobs", "sentinel", [("a", 26379), ("b", 26379)], "ann", "pw", 0),
        ("redis+cluster://a", "cluster", [("a", 6379)], None, None, 0),
        ("redis+cluster://a,b:7000,c/0", "cluster", [("a", 6379), ("b", 7000), ("c", 6379)], None, None, 0),
        ("redis+cluster://ann:pw@a,b/", "cluster", [("a", 6379), ("b", 6379)], "ann", "pw", 0),
    ],
)
def test_a_url_says_where_and_as_whom(
    url: str, *, form: str, places: list[tuple[str, int]], user: str | None, password: str | None, database: int
) -> None:
    options = read(url)

    assert (options.form, list(options.places)) == (form, places)
    assert (options.user, options.password, options.database) == (user, password, database)
    assert options.tls is url.startswith("rediss")
    assert options.master == ("jobs" if form == "sentinel" else None)


@given(st.text(min_size=1).filter(lambda text: "\0" not in text), st.text(min_size=1))
def test_any_password_and_user_that_are_quoted_come_through(user: str, password: str) -> None:
    def quoted(text: str) -> str:
        return quote(text, safe="", errors="replace")

    options = read(f"redis://{quoted(user)}:{quoted(password)}@db")

    assert (quoted(options.user or ""), quoted(options.password or "")) == (quoted(user), quoted(password))


def test_without_options_a_store_is_as_careful_as_it_can_be() -> None:
    options = read("redis://db")

    assert (options.prefix, options.spread, options.create, options.evicting) == ("windlass", False, True, False)
    assert (options.timeout, options.connections, options.wait, options.tls) == (10.0, 8, 0, False)


def test_every_option_is_read() -> None:
    options = read(
        "redis+sentinel://db/jobs?prefix=my.jobs:2&spread=queues&create=no&evicting=allowed&timeout=0.5&connections=20&wait=2"
        "&tls=yes&tls_ca=/ca&tls_cert=/cert&tls_key=/key&sentinel_user=ben&sentinel_password=pw"
    )

    assert (options.prefix, options.spread, options.create, options.evicting) == ("my.jobs:2", True, False, True)
    assert (options.timeout, options.connections, options.wait) == (0.5, 20, 2)
    assert (options.tls, options.tls_ca, options.tls_cert, options.tls_key) == (True, "/ca", "/cert", "/key")
    assert (options.sentinel_user, options.sentinel_password) == ("ben", "pw")


def test_sentinels_have_a_user_and_a_password_of_their_own() -> None:
    theirs = read("redis+sentinel://ann:pw@a/jobs/4?sentinel_user=ben&sentinel_password=other").of_sentinel()
    none = read("redis+sentinel://ann:pw@a/jobs/4").of_sentinel()

    assert (theirs.user, theirs.password, theirs.database) == ("ben", "other", 0)
    assert (none.user, none.password) == (None, None)


@pytest.mark.parametrize(
    "url, where",
    [
        ("redis://ann:pw@db:7000/3", "the server at db:7000"),
        ("redis://[::1]", "the server at [::1]:6379"),
        ("redis+sentinel://a,b:1/jobs", "the master jobs of the Sentinels at a:26379, b:1"),
        ("redis+cluster://a,b?prefix=mine", "the Cluster at a:6379, b:6379, prefix mine"),
    ],
)
def test_people_are_told_where_a_store_is(url: str, where: str) -> None:
    assert read(url).where == where


ONE_SERVER: Final = "several are redis+sentinel://h1,h2/master or redis+cluster://h1,h2"
WRONG: Final = [
    ("redis://db?prefx=x", "did you mean 'prefix'"),
    ("redis://db?prefix=", "'prefix' of the redis:// URL is empty"),
    ("redis://db?prefix=a|b", "1 to 64 of ASCII letters, digits and _ . : -"),
    ("redis://db?prefix=%7Ba%7D", "1 to 64 of ASCII letters"),
    ("redis://db?prefix=a%20b", "1 to 64 of ASCII letters"),
    ("redis://db?prefix=%C3%A5", "1 to 64 of ASCII letters"),
    (f"redis://db?prefix={'a' * 65}", "1 to 64 of ASCII letters"),
    ("redis://db?spread=all", "spread=queues, not"),
    ("redis://db?create=true", "create=yes|no"),
    ("redis://db?evicting=yes", "evicting=allowed"),
    ("redis://db?tls=no", "tls=yes"),
    ("redis://db?tls_ca=/ca", "tls_ca is for encrypted connections: write rediss://, or tls=yes"),
    ("redis+cluster://db?tls_cert=/cert&tls_key=/key", "tls_cert is for encrypted connections"),
    ("rediss://db?tls_cert=/cert", "tls_cert and tls_key of the rediss:// URL go together"),
    ("redis+sentinel://db/jobs?tls=yes&tls_key=/key", "go together"),
    ("redis+cluster://db?sentinel_user=ann", "sentinel_user is for redis+sentinel://host1,host2/master"),
    (f"redis://db?sentinel_password={SECRET}", "sentinel_password is for redis+sentinel://"),
    ("redis://db?timeout=0", "timeout=0.1 to 60, in seconds, not '0'"),
    ("redis://db?timeout=61", "timeout=0.1 to 60"),
    ("redis://db?timeout=nan", "timeout=0.1 to 60"),
    ("redis://db?timeout=1e1", "timeout=0.1 to 60"),
    ("redis://db?timeout=-1", "timeout=0.1 to 60"),
    ("redis://db?connections=0", "connections=1 to 1000"),
    ("redis://db?connections=1001", "connections=1 to 1000"),
    (f"redis://db?connections={'1' * 5000}", "connections=1 to 1000"),
    ("redis://db?connections=%D9%A1", "connections=1 to 1000"),
    ("redis://db?wait=101", "wait=0 to 100"),
    ("redis://db?wait=-1", "wait=0 to 100, not '-1'"),
    ("redis://db?wait=one", "wait=0 to 100, not 'one'"),
    ("redis://db/jobs", "the database of a redis:// URL is a number"),
    ("redis://db/0/1", "the database of a redis:// URL is a number"),
    ("redis://db/-1", "the database of a redis:// URL is a number"),
    ("redis://db/%D9%A1", "the database of a redis:// URL is a number"),
    ("redis:// db", "write host, host:6379"),
    ("redis://d b:6379/0", "write host, host:6379"),
    ("redis://a..b", "write host, host:6379"),
    (f"redis://{'a' * 64}.org", "write host, host:6379"),
    ("redis://db%00", "write host, host:6379"),
    ("redis://db%0A", "write host, host:6379"),
    ("redis://db:port", "write host, host:6379"),
    ("redis://db:0", "write host, host:6379"),
    ("redis://db:99999", "write host, host:6379"),
    ("redis://db:1:2", "write host, host:6379"),
    ("redis://a,,b", "write host, host:6379"),
    ("redis://[::1", "cannot be read"),
    ("redis://a,b", ONE_SERVER),
    ("rediss://a,b/0", ONE_SERVER),
    ("redis+sentinel://a,b", "needs the master's name: redis+sentinel://host1,host2/master"),
    ("redis+sentinel://a,b/", "needs the master's name"),
    ("redis+sentinel://a,b/jobs/x", "the database of a redis:// URL is a number"),
    ("redis+sentinel://a,b/jobs/0/1", "the database of a redis:// URL is a number"),
    ("redis+cluster://a,b/1", "a Cluster has no databases"),
    ("redis+cluster://a,b/jobs", "a Cluster has no databases"),
    (f"redis://ann:{SECRET}/x@db", "in a password '%2F' stands for '/'"),
    (f"redis+cluster://ann:{SECRET}/x@db", "in a password '%2F' stands for '/'"),
    (f"redis://ann:{SECRET}#x@db", "%23"),
    (f"redis://ann:{SECRET}?x@db", "name=value"),
    (f"redis://ann:{SECRET}@db:x", "in a user or a password '%2F' for '/'"),
    (f"redis://ann:{SECRET}@a,b", ONE_SERVER),
    (f"redis+sentinel://a/jobs?sentinel_password={SECRET}&sentinel_password={SECRET}", "twice"),
    (f"redis+sentinel://a/jobs?sentinel_pasword={SECRET}", "did you mean 'sentinel_password'"),
]


@pytest.mark.parametrize("url, advice", WRONG)
def test_a_wrong_url_is_refused_at_once_with_advice_and_without_its_password(url: str, advice: str) -> None:
    takers: tuple[Any, ...] = (windlass.connect, open_store, migrator)
    for take in takers:
        with pytest.raises(InvalidURL) as refused:
            take(url)

        assert advice in str(refused.value)
        assert SECRET not in repr(refused.value)
        assert SECRET not in repr(refused.value.__cause__)


@pytest.mark.parametrize(
    "url",
    [
        f"redis://ann:{SECRET}@db",
        f"rediss://:{SECRET}@db",
        f"redis+cluster://{SECRET}:{SECRET}@a,b",
        f"redis+sentinel://ann:{SECRET}@a,b/jobs?sentinel_user={SECRET}&sentinel_password={SECRET}",
    ],
)
def test_nothing_of_a_store_shows_its_password(url: str) -> None:
    shown = [
        parse(url, SCHEMES),
        read(url),
        read(url).where,
        read(url).of_sentinel(),
        open_store(url),
        migrator(url),
        windlass.connect(url),
    ]

    assert [each for each in map(repr, shown) if SECRET in each] == []


@pytest.mark.parametrize(
    "url",
    [
        f"redis://ann:{SECRET}@127.0.0.1:1?timeout=0.2",
        f"redis+cluster://ann:{SECRET}@127.0.0.1:1?timeout=0.2",
        f"redis+sentinel://ann:{SECRET}@127.0.0.1:1/jobs?timeout=0.2&sentinel_password={SECRET}",
    ],
)
async def test_what_is_said_of_a_server_that_is_not_there_shows_no_password(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("DEBUG"), pytest.raises(windlass.StoreUnavailable) as refused:
        await windlass.connect(url).open()

    assert refused.value.retryable
    assert SECRET not in repr(refused.value)
    assert SECRET not in repr(refused.value.__cause__)
    assert SECRET not in caplog.text
