"""The campaigns on SlateDB, in small; see `test_campaigns`."""

import asyncio
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from slatedb.uniffi import DbBuilder, ObjectStoreBuilder, ObjectStoreType, WriteBatch

import windlass
from proofs.ledger import Event, Ledger, read
from proofs.readers.slatedb import SlateReader
from proofs.report import Report, Verdict
from proofs.serving import Place
from proofs.slatedb import faults as slatedb_faults
from proofs.slatedb import kills as slatedb_kills
from proofs.slatedb import lines as slatedb_lines
from proofs.slatedb import storage as slatedb_storage
from proofs.slatedb import takeover as slatedb_takeover
from proofs.slatedb.owner_checks import check_all
from proofs.slatedb.owner_tasks import FOR_THE_DEAD, RAW, payload
from proofs.slatedb.s3_faults import LINES, WITH_A_BODY, WITH_EVERY_CALL
from windlass import NewJob

SLOWEST = ("1 kB/s", "stalls of 3 s")


def assert_holds(report: Report) -> None:
    assert report.verdict is Verdict.HOLDS, report.text()


def test_the_next_owner_goes_on_where_a_killed_one_was(tmp_path: Path) -> None:
    assert_holds(slatedb_kills.prove(tmp_path, slatedb_kills.Plan(jobs=100, kills=2, opens_within=9.0)))


def test_the_next_owner_goes_on_where_the_bucket_is_far_away(tmp_path: Path) -> None:
    plan = slatedb_kills.Plan(jobs=20, kills=1, store="s3", away=0.03, opens_within=18.0)

    assert_holds(slatedb_kills.prove(tmp_path, plan))


def test_the_next_owner_goes_on_where_settlements_delete_their_jobs(tmp_path: Path) -> None:
    assert_holds(slatedb_kills.prove(tmp_path, slatedb_kills.Plan(jobs=100, kills=2, opens_within=9.0, keep=False)))


def test_an_owner_that_is_taken_over_stops_and_settles_nothing_more(tmp_path: Path) -> None:
    plan = slatedb_takeover.Plan(jobs=50, takeovers=1, stops_within=20.0)

    assert_holds(slatedb_takeover.prove(tmp_path, plan))


def test_a_faulty_object_store_loses_and_tears_nothing(tmp_path: Path) -> None:
    plan = slatedb_faults.Plan(
        calls=150,
        pause=0.1,
        lease=3.0,
        stores=1,
        lives=2,
        outages=1,
        slack=10.0,
        bursts=2,
        # the others are done to few calls: tests/slatedb/test_faulty_bucket.py has them
        kinds=(*WITH_EVERY_CALL, *WITH_A_BODY),
    )

    assert_holds(slatedb_faults.prove(tmp_path, plan))


@pytest.mark.parametrize(
    "lines", [[name for name in LINES if name not in SLOWEST], pytest.param([*LINES], marks=pytest.mark.on_request)]
)
def test_the_work_is_done_over_bad_lines(tmp_path: Path, lines: list[str]) -> None:
    assert_holds(slatedb_lines.prove(tmp_path, slatedb_lines.Plan(jobs=slatedb_lines.BATCH, lines=lines)))


@pytest.mark.on_request
@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(slatedb_storage.Plan(jobs=4_000, most_bytes=1_000_000), id="folder"),
        pytest.param(replace(slatedb_storage.IN_A_BUCKET, jobs=10_000), id="bucket"),
    ],
)
def test_what_was_drained_leaves_a_few_objects_with_the_settings_that_users_have(
    tmp_path: Path, plan: slatedb_storage.Plan
) -> None:
    assert_holds(slatedb_storage.prove(tmp_path, plan))


def test_the_checks_notice_what_was_acknowledged_and_does_not_hold(tmp_path: Path) -> None:
    place = Place(f"slatedb+file://{tmp_path / 'store'}", tmp_path / "ledger")
    job, lost = str(uuid4()), str(uuid4())
    with windlass.connect_sync(place.url) as client:
        client.enqueue(RAW, payload(job), id=job)
        claim = client.claim(RAW)
        assert claim is not None
        client.ack(claim)
    first, second = Ledger(place.ledger, "owner 1"), Ledger(place.ledger, "owner 2")
    for name in (job, lost):
        first.write("invoked", name, note=name)
        first.write("ok", name, note=name)
    done: tuple[Event, ...] = ("begun", "ended", "settled")
    for event in done:
        first.write(event, job, delivery=1, token=claim.token)
    second.write("settled", job, delivery=1, token=str(uuid4()))
    second.write("settled", job, delivery=1, note=FOR_THE_DEAD, token=str(uuid4()))
    report = Report("", "")

    check_all(report, place, [*read(place.ledger)], kills=0)

    assert {what: len(found) for what, found in report.violations.items()} == {
        "lost: acknowledged and not there": 1,
        "lost: enqueued and not in the store": 1,
        "jobs settled twice": 1,
        "settlements acknowledged that did not hold": 1,
        "stale settlements accepted": 1,
    }


@pytest.mark.parametrize(
    "family, complaint",
    [
        (b"l", "a job that does not stand in its place"),
        (b"o", "a number without its job, or a job without"),
        (b"j", "a place that no job has"),
        (b"q", "work: ('pending', None) kept 0, counted 3"),
    ],
)
def test_the_reader_notices_what_is_missing(tmp_path: Path, family: bytes, complaint: str) -> None:
    url = f"slatedb+file://{tmp_path}"
    with windlass.connect_sync(url) as client:
        client.enqueue_many([NewJob("work") for _ in range(3)])
    reader = SlateReader(url)
    assert (reader.counts_off(), reader.integrity(), reader.unfinished(), reader.totals()) == ([], [], 3, (3, 0))

    asyncio.run(_delete(tmp_path, next(key for key in reader.found if key.startswith(family))))

    damaged = SlateReader(url)
    assert complaint in " ".join([*damaged.counts_off(), *damaged.integrity()])


async def _delete(folder: Path, key: bytes) -> None:
    objects = ObjectStoreBuilder(ObjectStoreType.LOCAL)
    objects.with_config("local_path", str(folder))
    database = await DbBuilder("", objects.build()).build()
    batch = WriteBatch()
    batch.delete(key)
    handle = await database.write(batch)
    await handle.await_durable()
    await database.shutdown()
