"""What the pages on buckets say, tried on a folder and on a bucket of the tests."""

import asyncio
import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

import windlass
from tests.docs.pages import DOCS, FILE, rows, text_of
from tests.slatedb.s3 import new_bucket_url, running
from windlass import Server
from windlass.connect import open_store
from windlass.stores.slatedb import keys
from windlass.stores.slatedb.address import read_address
from windlass.stores.slatedb.moves.housekeeping import MINUTES_KEPT, RECEIPTS_KEPT
from windlass.stores.slatedb.owner import OWNER_ALIVE
from windlass.stores.slatedb.owning import BEAT_ALONE
from windlass.stores.slatedb.records import APART
from windlass.stores.slatedb.settings import flushes_to_a_table, settings_of
from windlass.stores.slatedb.table import JOBS_KEPT
from windlass.stores.slatedb.untold import MOST_KEPT

RUNNING: Final = "howto/run-on-a-bucket.md"
WORKING: Final = "explanation/how-slatedb-works-here.md"
JSON: Final = re.compile(r"^```json\n(.*?)^```$", re.MULTILINE | re.DOTALL)
URLS: Final = sorted(
    {
        url
        for page in [*DOCS.rglob("*.md"), DOCS.parent / "README.md"]
        for url in re.findall(r"slatedb\+\w+://[^\s|)\"'`]+", page.read_text())
        if not any(part in url for part in ("…", "{", "regon", "secret"))
    }
)
NEEDS: Final = {
    "GetObject": "s3:GetObject",
    "HeadObject": "s3:GetObject",
    "PutObject": "s3:PutObject",
    "CreateMultipartUpload": "s3:PutObject",
    "UploadPart": "s3:PutObject",
    "CompleteMultipartUpload": "s3:PutObject",
    "AbortMultipartUpload": "s3:AbortMultipartUpload",
    "DeleteObject": "s3:DeleteObject",
    "DeleteObjects": "s3:DeleteObject",
    "ListObjectsV2": "s3:ListBucket",
}
"""Which right each call needs, as S3 has it."""


@pytest.mark.parametrize("url", URLS)
def test_every_url_of_every_page_can_be_read(url: str) -> None:
    open_store(url)


def test_the_page_on_how_it_works_knows_every_family_of_keys() -> None:
    made = set(re.findall(r"^\| `(\w)` \|", keys.__doc__ or "", re.MULTILINE))
    told = {letter for names, _ in rows(WORKING, "family") for letter in re.findall(r"\w", names)}

    assert len(made) > 15
    assert made == told


def test_the_page_has_the_times_and_sizes_of_the_code() -> None:
    whole, bucket = text_of(WORKING), read_address("slatedb+s3", "acme-jobs", "/shop", {})
    engine = json.loads(settings_of(bucket).to_json_string())
    folder = read_address("slatedb+file", "", "/jobs", {})
    in_a_folder = json.loads(settings_of(folder).to_json_string())["l0_sst_size_bytes"] >> 20
    collector = engine["garbage_collector_options"]

    assert f"younger than {OWNER_ALIVE.total_seconds():.0f} s" in whole
    assert f"or alone after {BEAT_ALONE.total_seconds():.0f} s" in whole
    assert f"`?flush=` apart: {bucket.flush / timedelta(milliseconds=1):.0f} ms on a bucket" in whole
    assert f"After {flushes_to_a_table(bucket)} of them in a bucket" in whole
    assert f"or {engine['l0_sst_size_bytes'] >> 20} MiB, the changes" in whole
    assert f"(in a folder after {flushes_to_a_table(folder)}, or {in_a_folder} MiB)" in whole
    assert f"up to {engine['max_unflushed_bytes'] >> 20} MiB of what is not in tables yet" in whole
    for what in ("wal", "manifest", "compacted"):
        assert (collector[f"{what}_options"]["interval"], collector[f"{what}_options"]["min_age"]) == ("60s", "60s")
    assert f"the last {JOBS_KEPT:,} jobs" in whole
    assert f"the last {MOST_KEPT:,} settlements" in whole
    assert (APART, MINUTES_KEPT.days, RECEIPTS_KEPT) == (1_024, 8, timedelta(minutes=10))


async def test_a_store_in_a_bucket_asks_for_no_more_rights_than_the_page_gives() -> None:
    [policy] = [json.loads(text) for text in JSON.findall(text_of(RUNNING))]
    given: set[str] = set()
    for statement in policy["Statement"]:
        given |= {statement["Action"]} if isinstance(statement["Action"], str) else {*statement["Action"]}
    with new_bucket_url() as url:
        before = running().server.calls.copy()
        for _ in range(2):
            async with windlass.connect(url) as client:
                await client.enqueue_many([windlass.NewJob("email", b"x" * 2_000) for _ in range(200)])
                claims = await client.claim_many("email", limit=100)
                await asyncio.gather(*map(client.ack, claims))
        asked = running().server.calls - before

    assert {NEEDS[call] for call in asked} <= given
    assert {"PutObject", "GetObject", "ListObjectsV2"} <= {*asked}


async def test_the_program_of_the_page_works_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_URL", f"slatedb+file://{tmp_path}/jobs")
    [(text, _)] = FILE.findall(text_of(RUNNING))
    names: dict[str, Any] = {}
    exec(text, names)  # noqa: S102 - code of our own pages

    async with names["app"] as app, Server(app):
        assert await (await names["greet"].enqueue("Ada")).result(timeout=30) == "hello Ada"
