"""Django's connections, which each thread has its own of."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import connections, transaction
from django.utils.connection import ConnectionProxy

import windlass
from tests.stores.postgres.ways import Undone, django_database
from windlass import BlockingClient, InvalidValue, State


@pytest.fixture
def alias(schema: str) -> Iterator[str]:
    with django_database(schema) as alias:
        yield alias
        connections[alias].close()


@pytest.fixture
def client(schema: str) -> Iterator[BlockingClient]:
    with windlass.connect_sync(schema) as client:
        yield client


def payloads(client: BlockingClient) -> list[bytes]:
    return [job.payload for job in client.jobs()]


def test_what_stands_for_each_threads_connection_is_taken_too(client: BlockingClient, alias: str) -> None:
    """`django.db.connection` is one."""
    proxy: Any = ConnectionProxy(connections, alias)

    with transaction.atomic(using=alias):
        client.enqueue("email", b"committed", connection=proxy)

    assert payloads(client) == [b"committed"]


def test_outside_of_an_atomic_block_it_is_refused(client: BlockingClient, alias: str) -> None:
    with pytest.raises(InvalidValue, match=r"no transaction is open.*transaction\.atomic\(\)"):
        client.enqueue("email", connection=connections[alias])

    assert payloads(client) == []


def test_a_block_within_a_block_can_be_undone_alone(client: BlockingClient, alias: str) -> None:
    def inner() -> None:
        with transaction.atomic(using=alias):
            client.enqueue("email", b"inner", connection=connections[alias])
            raise Undone

    with transaction.atomic(using=alias):
        client.enqueue("email", b"outer", connection=connections[alias])
        with pytest.raises(Undone):
            inner()

    assert payloads(client) == [b"outer"]


def test_a_transaction_that_is_managed_by_hand_works(client: BlockingClient, alias: str) -> None:
    transaction.set_autocommit(False, using=alias)
    client.enqueue("email", b"rolled back", connection=connections[alias])
    transaction.rollback(using=alias)
    client.enqueue("email", b"committed", connection=connections[alias])
    transaction.commit(using=alias)
    transaction.set_autocommit(True, using=alias)

    assert payloads(client) == [b"committed"]


def test_a_claim_is_settled_although_django_reads_times_without_a_zone(client: BlockingClient, alias: str) -> None:
    client.enqueue("email")
    first = client.claim("email")
    assert first is not None

    with transaction.atomic(using=alias):
        client.nack(first, "broken", delay=0, connection=connections[alias])
    second = client.claim("email")
    assert second is not None
    with transaction.atomic(using=alias):
        client.ack(second, connection=connections[alias])

    job = client.get(first.job.id)
    assert job is not None
    assert (job.state, [delivery.outcome for delivery in job.history]) == (State.SUCCEEDED, ["failed", "succeeded"])


async def test_in_the_thread_of_an_event_loop_it_is_refused(schema: str, alias: str) -> None:
    async with windlass.connect(schema) as client:
        with pytest.raises(InvalidValue, match="cannot be used in a thread that runs an event loop"):
            await client.enqueue("email", connection=connections[alias])


async def test_each_thread_writes_in_its_own_transaction(schema: str, alias: str) -> None:
    blocking = windlass.connect_sync(schema)

    def write(number: int) -> None:
        try:
            with transaction.atomic(using=alias):
                blocking.enqueue("email", b"%d" % number, connection=connections[alias])
                transaction.set_rollback(number % 2 == 1, using=alias)
        finally:
            connections[alias].close()

    with blocking, ThreadPoolExecutor(4) as threads:
        loop = asyncio.get_running_loop()
        await asyncio.gather(*(loop.run_in_executor(threads, write, number) for number in range(20)))
        kept = {job.payload for job in await asyncio.to_thread(blocking.jobs)}

    assert kept == {b"%d" % number for number in range(0, 20, 2)}


def test_a_sqlite_file_of_djangos_takes_jobs_too(tmp_path: Path, schema: str) -> None:
    path = tmp_path / "jobs.db"
    with windlass.connect_sync(f"sqlite:///{path}") as client, django_database(schema) as alias:
        connections.databases[alias] |= {"ENGINE": "django.db.backends.sqlite3", "NAME": path}
        for payload in (b"committed", b"rolled back"):
            with transaction.atomic(using=alias):
                client.enqueue("email", payload, connection=connections[alias])
                transaction.set_rollback(payload == b"rolled back", using=alias)
        connections[alias].close()

        assert payloads(client) == [b"committed"]


def test_django_on_psycopg2_works_as_well(client: BlockingClient, schema: str) -> None:
    program = Path(__file__).with_name("django_on_psycopg2.py")

    done = subprocess.run(
        [sys.executable, "-W", "error", program, schema], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert payloads(client) == [b"committed"]
