"""The first call of a process, in a transaction that was open before the store was made."""

from typing import Literal

import asyncpg
import pytest

import windlass
from tests.postgres.cluster import dsn_of
from windlass import NewJob, StoreUnavailable


@pytest.mark.parametrize("isolation", ["read_committed", "repeatable_read", "serializable"])
async def test_the_store_is_made_beside_a_transaction_that_is_open(
    schema: str, isolation: Literal["read_committed", "repeatable_read", "serializable"]
) -> None:
    client = windlass.connect(schema)
    connection = await asyncpg.connect(dsn_of(schema))
    transaction = connection.transaction(isolation=isolation)
    await transaction.start()
    await connection.execute("create temporary table mine (name text)")

    if isolation != "read_committed":
        for job in (NewJob("email"), NewJob("email", kv={"key": b"value"})):
            with pytest.raises(StoreUnavailable, match="Roll back, and begin again") as refused:
                await client.enqueue_many([job], connection=connection)
            assert refused.value.retryable
        await transaction.rollback()
        transaction = connection.transaction(isolation=isolation)
        await transaction.start()
    await client.enqueue("email", connection=connection)
    await transaction.commit()

    assert (await client.stats()).pending == 1
    await connection.close()
    await client.close()
