"""The S3 that tests of stores use: a prefix for each, and nothing of it is left."""

import asyncio
import os

import pytest
from slatedb.uniffi import Db, DbBuilder, FlushOptions, FlushType, ObjectStoreBuilder, ObjectStoreType

from tests.servers.another import other_process, told_by
from tests.slatedb import s3
from tests.slatedb.asking import ask

DURABLE = FlushOptions(flush_type=FlushType.WAL)
TELLS = """
import os
from tests.slatedb import s3
with s3.new_bucket_url(flush="0") as url:
    print(url, *(os.environ[name] for name in s3.CREDENTIALS), flush=True)
    input()
"""


async def opened(path: str) -> Db:
    builder = ObjectStoreBuilder.from_env(ObjectStoreType.S3)
    for name, value in {"bucket": s3.BUCKET, "endpoint": s3.running().endpoint, "allow_http": "true"}.items():
        builder.with_config(name, value)
    return await DbBuilder(path, builder.build()).build()


def keys_of(prefix: str) -> list[str]:
    return [key for key in s3.running().bucket.objects if key.startswith(f"{prefix}/")]


def test_what_a_test_has_written_is_gone_in_the_end() -> None:
    with s3.new_bucket_url() as first, s3.new_bucket_url() as second:
        prefixes = [url.partition("?")[0].rpartition("/")[2] for url in (first, second)]
        for prefix in prefixes:
            ask(s3.running().endpoint, "PUT", f"/{s3.BUCKET}/{prefix}/a")
        assert [len(keys_of(prefix)) for prefix in prefixes] == [1, 1]

    assert prefixes[0] != prefixes[1]
    assert [keys_of(prefix) for prefix in prefixes] == [[], []]


def test_a_process_has_a_server_and_credentials_of_its_own() -> None:
    with other_process(TELLS) as process:
        url, *credentials = told_by(process)
        process.communicate("\n")

    assert url.startswith(f"slatedb+s3://{s3.BUCKET}/test-1?endpoint=http://127.0.0.1:")
    assert url.endswith("&flush=0")
    assert credentials == [*s3.CREDENTIALS.values()]
    assert process.returncode == 0, "it ended, and its server with it"


def test_a_stranger_is_refused() -> None:
    os.environ.update(s3.CREDENTIALS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ask.__globals__["CREDENTIALS"], "AWS_ACCESS_KEY_ID", "stranger")

        told = ask(s3.running().endpoint, "GET", f"/{s3.BUCKET}/a")

    assert (told.status, b"InvalidAccessKeyId" in told.body) == (403, True)


async def test_the_engine_writes_reads_and_fences_on_it() -> None:
    with s3.new_bucket_url() as url:
        path = url.partition("?")[0].rpartition("/")[2]
        first = await opened(path)
        await first.put(b"a", b"first")
        await first.flush_with_options(DURABLE)
        second = await opened(path)

        assert await second.get(b"a") == b"first"

        # it may have noticed by itself, and closed, before any of these calls
        with pytest.raises(Exception, match=r"detected newer DB client|db is closed"):
            await put_and_flush(first, b"too late")
        assert await second.get(b"a") == b"first"
        await asyncio.gather(first.shutdown(), second.shutdown(), return_exceptions=True)


async def put_and_flush(database: Db, value: bytes) -> None:
    await database.put(b"a", value)
    await database.flush_with_options(DURABLE)
