import subprocess
import sys
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

import windlass
from windlass import InvalidName, InvalidURL, InvalidValue, QueueSettings, SchemaMissing
from windlass.connect import lead_to_one_store, migrator, open_store, without_creating

WRONG_URLS = [
    ("", "no scheme"),
    ("jobs.db", "no scheme"),
    ("sqlit:///jobs.db", "did you mean 'sqlite'"),
    ("mysql://user:secret@host/db", "no store has the scheme 'mysql'"),
    ("sqlite://jobs.db", "three slashes"),
    ("sqlite:///", "path of a file"),
    ("sqlite:////", "path of a file"),
    ("sqlite:///folder/", "path of a file"),
    ("sqlite:///:memory:", "memory://"),
    ("sqlite:///a%00b.db", "path of a file"),
    ("sqlite:///jobs.db#part", "%23"),
    ("sqlite:///jobs.db?synchronos=full", "no option 'synchronos', did you mean 'synchronous'"),
    ("sqlite:///jobs.db?synchronous=off", "synchronous=full|normal"),
    ("sqlite:///jobs.db?create", "name=value"),
    ("sqlite:///jobs.db?create=no&create=yes", "twice"),
    ("memory://name/path", "no path"),
    ("memory://?create=no", "takes none"),
    ("postgres://[half/db", "postgres"),
    ("postgress://host/db", "did you mean 'postgres'"),
    ("redis+sentinels://host/master", "did you mean 'redis+sentinel'"),
    ("valkey://host", "redis://user:password@host/0"),
]


@pytest.mark.parametrize(
    "url, same",
    [
        ("postgresql+asyncpg://ann:pw@db/shop", "postgresql://ann:pw@db/shop"),
        ("postgresql+psycopg_async://ann@db/shop", "postgres://ann@db/shop"),
        ("postgres+psycopg2://ann@db/shop", "postgres://ann@db/shop"),
        ("SQLite+aiosqlite:///jobs.db", "sqlite:///jobs.db"),
    ],
)
def test_a_url_of_sqlalchemy_leads_to_the_same_store(url: str, same: str) -> None:
    assert lead_to_one_store(url, same)
    assert type(open_store(url)) is type(open_store(same))
    assert lead_to_one_store(without_creating(url), same)


def test_a_url_of_sqlalchemy_with_a_driver_of_another_database_is_refused() -> None:
    with pytest.raises(InvalidURL, match=r"no store has the scheme 'sqlite\+asyncpg'"):
        open_store("sqlite+asyncpg:///jobs.db")


@pytest.mark.parametrize("url, advice", WRONG_URLS)
def test_a_wrong_url_is_refused_at_once_with_advice(url: str, advice: str) -> None:
    with pytest.raises(InvalidURL) as refused:
        windlass.connect(url)

    assert advice in str(refused.value)


@pytest.mark.parametrize("url", ["mysql://user:secret@host/db", "user:secret@host/db", "sqlite://user:secret@host/db"])
def test_no_message_shows_a_password(url: str) -> None:
    with pytest.raises(InvalidURL) as refused:
        windlass.connect(url)

    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("scheme", ["redis", "redis+cluster", "postgres"])
@pytest.mark.parametrize(
    "password", ["p?secret", "p?secret=1", "p?timeout=5&secret", "p?create=secret", "p?a=1&secret="]
)
def test_no_message_shows_a_part_of_a_password_with_a_question_mark(scheme: str, password: str) -> None:
    with pytest.raises(InvalidURL) as refused:
        windlass.connect(f"{scheme}://ann:{password}@host/0")

    assert "secret" not in str(refused.value)


def test_a_url_that_is_no_string_is_refused() -> None:
    with pytest.raises(InvalidURL, match="takes a URL or a store"):
        windlass.connect(Path("jobs.db"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "scheme, driver, extra",
    [
        ("postgres", "asyncpg", "postgres"),
        ("postgresql", "asyncpg", "postgres"),
        ("redis", "hiredis", "redis"),
        ("redis+sentinel", "hiredis", "redis"),
    ],
)
@pytest.mark.parametrize("take", ["connect", "migrator"])
def test_a_driver_that_is_not_installed_names_its_extra(scheme: str, driver: str, extra: str, take: str) -> None:
    program = f"""
import sys
sys.modules["{driver}"] = None
import windlass
from windlass.connect import {take}
try:
    {take}("{scheme}://user:secret@host/0")
except windlass.MissingExtra as error:
    print(error)
"""

    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout

    assert said == f"{scheme}:// needs the extra '{extra}': pip install 'windlass[{extra}]'\n"


def test_an_engine_that_is_not_installed_names_its_extra() -> None:
    program = """
import sys
sys.modules["slatedb"] = None
import windlass
try:
    windlass.connect("slatedb+s3://bucket/prefix")
except windlass.MissingExtra as error:
    print(error)
"""

    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout

    assert said == "slatedb+s3:// needs the extra 'slatedb': pip install 'windlass[slatedb]'\n"


def test_connecting_to_a_file_does_not_make_it(tmp_path: Path) -> None:
    windlass.connect(f"sqlite:///{tmp_path}/jobs.db")

    assert list(tmp_path.iterdir()) == []


async def test_a_plain_memory_store_is_shared_with_nobody() -> None:
    async with windlass.connect("memory://") as one, windlass.connect("memory://") as other:
        await one.enqueue("email")

        assert await other.queues() == []


async def test_a_named_memory_store_is_shared_and_outlives_its_clients() -> None:
    async with windlass.connect("memory://shared-by-name") as one:
        await one.enqueue("email")

    async with windlass.connect("memory://shared-by-name") as other:
        assert await other.queues() == ["email"]


def test_open_store_gives_the_store_of_a_url() -> None:
    assert open_store("memory://shared") is open_store("memory://shared")
    assert open_store("memory://") is not open_store("memory://")


@pytest.mark.parametrize(
    "settings",
    [
        {"max_attempts": 0},
        {"max_attempts": True},
        {"lease": -1},
        {"lease": float("nan")},
        {"priority": -1},
        {"retry": "soon"},
        {"keep_dead": "a week"},
        {"max_payload": -1},
        {"poll_interval": 0},
        {"queues": {"email": QueueSettings(max_attempts=0)}},
    ],
)
def test_a_wrong_setting_is_refused_at_once(settings: dict[str, object]) -> None:
    with pytest.raises(InvalidValue):
        windlass.connect("memory://", **settings)  # type: ignore[arg-type]


def test_a_wrong_queue_or_worker_name_is_refused_at_once() -> None:
    with pytest.raises(InvalidName):
        windlass.connect("memory://", queues={"": QueueSettings()})
    with pytest.raises(InvalidName):
        windlass.connect("memory://", worker="a b")


async def test_settings_of_a_queue_go_over_those_of_the_client() -> None:
    fast = QueueSettings(max_attempts=1, priority=7, lease=timedelta(seconds=5))
    async with windlass.connect("memory://", max_attempts=9, queues={"fast": fast}) as client:
        await client.enqueue("fast")
        await client.enqueue("slow")
        first, second = await client.claim_many(["fast", "slow"], limit=2)

    assert (first.job.max_attempts, first.job.priority) == (1, 7)
    assert (second.job.max_attempts, second.job.priority) == (9, windlass.PRIORITY_NORMAL)
    assert lease_of(first) == timedelta(seconds=5)
    assert lease_of(second) == timedelta(seconds=30)


def lease_of(claim: windlass.Claim) -> timedelta:
    assert claim.job.lease_expires_at is not None
    assert claim.job.claimed_at is not None
    return claim.job.lease_expires_at - claim.job.claimed_at


def test_a_client_that_is_opened_without_an_event_loop_names_the_two_ways() -> None:
    client = windlass.connect("memory://")

    with pytest.raises(TypeError, match=r"by `async with`: .* windlass[.]connect_sync"), ExitStack() as stack:
        stack.enter_context(client)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def test_a_store_of_ones_own_is_taken_in_place_of_a_url() -> None:
    store = open_store("memory://")

    async with windlass.connect(store) as client:
        await client.enqueue("email")

    assert [row.pending for row in await store.stats()] == [1]


@pytest.mark.parametrize(
    "url, only_there",
    [
        ("sqlite:///jobs.db", "sqlite:///jobs.db?create=no"),
        ("sqlite:///jobs.db?synchronous=normal", "sqlite:///jobs.db?synchronous=normal&create=no"),
        ("sqlite:///jobs.db?create=yes", "sqlite:///jobs.db?create=yes"),
        ("sqlite:///jobs.db?", "sqlite:///jobs.db?create=no"),
        ("memory://name", "memory://name"),
    ],
)
async def test_whoever_only_looks_makes_no_store(
    url: str, only_there: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert without_creating(url) == only_there
    if only_there.endswith("create=no"):
        with pytest.raises(SchemaMissing):
            await windlass.connect(only_there).open()


@pytest.mark.parametrize(
    "url, only_there",
    [
        ("postgres://db/shop", "postgres://db/shop?create=no"),
        ("postgresql:///shop?host=/run/x", "postgresql:///shop?host=/run/x&create=no"),
        ("postgres://db/shop?create=yes", "postgres://db/shop?create=yes"),
        ("redis://db/0", "redis://db/0?create=no"),
        ("redis+sentinel://a,b/jobs/0?wait=1", "redis+sentinel://a,b/jobs/0?wait=1&create=no"),
    ],
)
def test_whoever_only_looks_makes_no_schema(url: str, only_there: str) -> None:
    assert without_creating(url) == only_there


@pytest.mark.parametrize("url", ["memory://name", "slatedb+memory://name", "slatedb+s3://bucket/prefix"])
def test_a_store_without_a_schema_has_no_migrator(url: str) -> None:
    assert migrator(url) is None


@pytest.mark.parametrize(
    "one, other",
    [
        ("memory://a", "memory://a"),
        ("sqlite:///a.db", "sqlite:///./a.db"),
        ("sqlite:///a.db", "sqlite:///{here}/a.db"),
        ("sqlite:///a.db", "sqlite:///link.db?synchronous=normal"),
        ("slatedb+file://{here}/x", "slatedb+file://{here}/x/"),
        ("slatedb+file://{here}/x", "slatedb+file://{here}/y/../x?timeout=5"),
        ("slatedb+s3://bucket/jobs", "slatedb+s3://bucket/jobs/?region=eu-central-1"),
        ("redis://localhost/0", "redis://127.0.0.1:6379"),
        ("redis://db", "redis://ann:pw@DB.:6379/0?prefix=windlass"),
        ("redis+sentinel://a,b/jobs", "redis+sentinel://b:26379/jobs/0"),
        ("redis+cluster://a,b", "redis+cluster://c,b:6379"),
        ("postgres://localhost/shop", "postgresql://ann:pw@127.0.0.1:5432/shop?timeout=5"),
        ("postgres://a,b/shop", "postgres://b,a/shop"),
        ("postgres://ann@db", "postgres://db?user=ann"),
        ("postgres:///shop?schema=s", "postgres://?dbname=shop&schema=s"),
        ("http://jobs", "http://JOBS:80/"),
        ("https://jobs/a", "https://jobs:443/a/?timeout=5"),
    ],
)
def test_two_urls_of_one_store_are_known_for_it_however_they_are_spelt(
    one: str, other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PGPORT", raising=False)
    Path("link.db").symlink_to("a.db")

    assert lead_to_one_store(one.format(here=tmp_path), other.format(here=tmp_path))


@pytest.mark.parametrize(
    "one, other",
    [
        # one that has no name is a new one each time
        ("memory://", "memory://"),
        ("memory://a", "memory://b"),
        ("sqlite:///a.db", "sqlite:///b.db"),
        ("sqlite:///a.db", "slatedb+file:///a.db"),
        ("slatedb+s3://bucket/jobs", "slatedb+s3://bucket/jobs?endpoint=http://localhost:9000"),
        ("slatedb+s3://bucket", "slatedb+gs://bucket"),
        ("redis://db/0", "redis://db/1"),
        ("redis://db/0", "redis://db/0?prefix=other"),
        ("redis://db:6379", "rediss://db:6380"),
        ("redis+sentinel://a/jobs", "redis+sentinel://a/mail"),
        ("redis+cluster://a", "redis+cluster://b"),
        ("postgres://db/shop", "postgres://db/mail"),
        ("postgres://db/shop", "postgres://db/shop?schema=other"),
        # the environment says another port
        ("postgres://db:5432/shop", "postgres://db/shop"),
        ("postgres:///shop?host=a", "postgres:///shop?host=b"),
        ("postgres://ann@db", "postgres://bob@db"),
        ("http://jobs", "https://jobs"),
        ("http://jobs/a", "http://jobs/b"),
    ],
)
def test_two_urls_that_may_lead_to_two_stores_are_not_taken_for_one(
    one: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPORT", "5433")

    assert not lead_to_one_store(one, other)
