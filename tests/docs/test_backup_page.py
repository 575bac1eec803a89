"""A backup and a restore by the commands of their page, and what they mean for jobs."""

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

import windlass
from tests.docs.pages import text_of
from tests.postgres.cluster import cluster, dsn_of, schema_of
from windlass import ClaimLost, Client, NewJob

PAGE = text_of("howto/back-up-and-restore-postgres.md")
BACK_UP, RESTORE = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
[OTHER_IDENTITY] = re.findall(r"^```sql\n.*?\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.skipif(cluster().programs is None, reason="the programs that fit the server are not known")


@pytest.fixture
async def client(schema: str) -> AsyncIterator[Client]:
    async with windlass.connect(schema) as client:
        yield client


def shell(commands: str, schema: str, folder: Path) -> None:
    """Run the commands of the page on this test's schema."""
    named = re.sub(r"(--schema=|if exists )jobs\b", rf"\g<1>{schema_of(schema)}", commands)
    assert named.count(schema_of(schema)) == 1
    path = f"{cluster().programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "DATABASE": dsn_of(schema), "WINDLASS_URL": schema}
    done = subprocess.run(
        ["sh", "-ec", named], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr


async def test_a_restore_is_a_step_back_in_time(client: Client, schema: str, tmp_path: Path) -> None:
    jobs = await client.enqueue_many([NewJob("email", bytes([number])) for number in range(3)])
    [running] = await client.claim_many("email", limit=1)
    shell(BACK_UP, schema, tmp_path)
    [after] = await client.claim_many("email", limit=1)
    await client.ack(running)
    later = await client.enqueue("email", b"later")

    shell(RESTORE, schema, tmp_path)

    stats = await client.stats("email")
    assert (stats.pending, stats.running, stats.succeeded) == (2, 1, 0)
    assert await client.get(later.id) is None
    with pytest.raises(ClaimLost):
        await client.ack(after)
    again = await client.claim_many("email", limit=5)
    assert [claim.job.id for claim in again] == [job.id for job in jobs[1:]]


async def test_a_copy_can_be_given_an_identity_of_its_own(client: Client, schema: str) -> None:
    ours = sql.Identifier(schema_of(schema), "windlass_meta")
    identity = sql.SQL("select value from {} where name = 'store'").format(ours)
    before = cluster().run(identity)

    with psycopg.connect(dsn_of(schema), autocommit=True) as connection:
        connection.execute(OTHER_IDENTITY.replace("jobs.", f"{schema_of(schema)}.").encode())

    [(value,)] = cluster().run(identity)
    assert [(value,)] != before
    async with windlass.connect(schema) as copy:
        await copy.enqueue("email", b"hello")
    assert (await client.stats()).pending == 1
