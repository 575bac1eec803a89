import asyncio
import socket
from collections.abc import Generator
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.http.frames import Request
from tests.slatedb.s3 import CREDENTIALS, new_bucket_url, running
from tests.slatedb.s3_server import Answer
from windlass.core.errors import StoreUnavailable
from windlass.store_url import parse
from windlass.stores.slatedb.address import Address, read_address
from windlass.stores.slatedb.database import Database
from windlass.stores.slatedb.doors import look_up, open_database, open_reader
from windlass.stores.slatedb.owner import check_free

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECRET = "hunter2"  # noqa: S105 - to look for


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    # it sets the credentials of all tests: begun within one of these, they would be gone with it
    running()
    for name, value in {**CREDENTIALS, "AWS_SECRET_ACCESS_KEY": SECRET}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def dead() -> Generator[Address]:
    """Give the address of a bucket behind a port that takes no connections."""
    with closing(socket.socket()) as held:
        held.bind(("127.0.0.1", 0))
        yield Address("s3", "bucket", "jobs", endpoint=f"http://127.0.0.1:{held.getsockname()[1]}", timeout=0.5)


@pytest.fixture
def silent() -> Generator[Address]:
    """Give the address of a bucket behind a port that takes connections and never answers."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield Address("s3", "bucket", "jobs", endpoint=f"http://127.0.0.1:{server.getsockname()[1]}", timeout=0.5)


@pytest.mark.parametrize("where", ["dead", "silent"])
async def test_what_does_not_answer_is_named_when_the_deadline_is_past(
    where: str, request: pytest.FixtureRequest
) -> None:
    address: Address = request.getfixturevalue(where)

    for attempt in (open_database(address), open_reader(address), look_up(address, b"a"), check_free(address, NOW)):
        async with asyncio.timeout(30):
            with pytest.raises(StoreUnavailable) as refused:
                await attempt
        assert refused.value.retryable
        assert f"slatedb+s3://bucket/jobs at {address.endpoint}" in str(refused.value)
        assert SECRET not in str(refused.value)
        # nothing was asked
        assert "may still be done" not in str(refused.value)


async def test_a_port_that_takes_no_connections_is_told_long_before_a_long_deadline(dead: Address) -> None:
    async with asyncio.timeout(30):
        with pytest.raises(StoreUnavailable, match="does not answer: check that it runs") as refused:
            await check_free(replace(dead, timeout=60), NOW)

    assert refused.value.retryable


async def test_a_bucket_that_is_not_there_is_named() -> None:
    with new_bucket_url() as url:
        parts = parse(url, ["slatedb+s3"])
        address = read_address(parts.scheme, "nowhere", parts.path, parts.options)

        with pytest.raises(StoreUnavailable, match=r"no bucket 'nowhere'.*make it") as refused:
            await check_free(address, NOW)

    assert not refused.value.retryable


async def test_who_is_not_let_in_is_told_which_variables_to_check(monkeypatch: pytest.MonkeyPatch) -> None:
    with new_bucket_url() as url:
        parts = parse(url, ["slatedb+s3"])
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody-else")

        with pytest.raises(StoreUnavailable, match="refused this process: check AWS_ACCESS_KEY_ID") as refused:
            await check_free(read_address(parts.scheme, parts.host, parts.path, parts.options), NOW)

    assert not refused.value.retryable
    assert SECRET not in str(refused.value)


async def test_a_clock_that_is_wrong_is_named_and_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    with new_bucket_url() as url:
        parts = parse(url, ["slatedb+s3"])
        monkeypatch.setattr(running().server, "answer", find_the_time_wrong)

        with pytest.raises(StoreUnavailable, match="the clock of this machine") as refused:
            await check_free(read_address(parts.scheme, parts.host, parts.path, parts.options), NOW)

    assert refused.value.retryable
    assert "AWS_" not in str(refused.value)


def find_the_time_wrong(_: Request) -> Answer:
    return Answer(403, body=b"<Error><Code>RequestTimeTooSkewed</Code><Message>by plan</Message></Error>")


async def test_an_endpoint_may_stand_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with new_bucket_url() as url:
        parts = parse(url, ["slatedb+s3"])
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", parts.options["endpoint"])
        address = read_address(parts.scheme, parts.host, parts.path, {})
        assert address.place == read_address(parts.scheme, parts.host, parts.path, parts.options).place
        database = await open_database(address)
        await database.write({b"a": b"1"})
        await database.close()

        [found] = await look_up(read_address(parts.scheme, parts.host, parts.path, parts.options), b"a")

    assert found == b"1"


async def test_an_account_that_is_not_named_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)

    with pytest.raises(StoreUnavailable, match="AZURE_STORAGE_ACCOUNT_NAME"):
        await open_database(Address("az", "container", "jobs"))


async def test_what_was_written_while_the_bucket_was_gone_becomes_durable_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with new_bucket_url() as url:
        parts = parse(url, ["slatedb+s3"])
        address = replace(read_address(parts.scheme, parts.host, parts.path, parts.options), timeout=0.5)
        database = await open_database(address)

        with monkeypatch.context() as gone:
            gone.setattr(running().server, "answer", refuse)
            await database.write({b"a": b"1"})
            with pytest.raises(StoreUnavailable, match=r"did not answer within 0\.5 s") as refused:
                await database.flush()
        await flush_at_last(database)

        assert refused.value.retryable
        assert await look_up(address, b"a") == [b"1"]
        await database.close()


def refuse(_: Request) -> Answer:
    return Answer(503)


async def flush_at_last(database: Database) -> None:
    async with asyncio.timeout(30):
        while True:
            with suppress(StoreUnavailable):
                return await database.flush()
