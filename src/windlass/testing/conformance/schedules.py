"""Schedules are kept as they were written, changed by whoever has read them last, and told when they are due."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Final

import pytest

from windlass.core.ids import JobId
from windlass.core.names import MAX_PAYLOAD
from windlass.core.schedule import CatchUp, Overlap, Schedule
from windlass.core.store import Store
from windlass.core.topics import SCHEDULES
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import listening, soon
from windlass.testing.conformance.given import DAY, HOUR, MINUTE, SECOND, UNKNOWN, a_schedule, kept, written
from windlass.testing.conformance.reach import Reach

MANY: Final = 1_000


async def test_every_field_of_a_schedule_is_kept(store: Store, clock: FakeClock) -> None:
    schedule = Schedule(
        id="reports/nightly:v1.2@eu#7",
        rule="0 30 2 * * mon-fri",
        timezone="America/Argentina/Buenos_Aires",
        queue="reports",
        kind="report",
        payload=b'{"name": "\xc3\xbc\xf0\x9f\xaa\x9d"}',
        codec="json",
        headers={"trace": "ü 🪝 \u2028 \x00 '\"\\", "empty": ""},
        tenant="acme",
        priority=0,
        max_attempts=2**31 - 1,
        catch_up="all",
        overlap="skip",
        declared=True,
        paused=True,
        next_run_at=clock.now() + timedelta(days=400, microseconds=1),
        last_run_at=clock.now() - timedelta(days=400, microseconds=1),
        last_job_id=JobId("01890000-0000-7000-8000-000000000001"),
    )

    revision = await store.write_schedule(schedule, expected=None)

    assert revision is not None
    assert await kept(store, schedule.id) == replace(schedule, revision=revision)


async def test_a_schedule_needs_no_more_than_its_rule_and_its_job(store: Store) -> None:
    schedule = Schedule(id="s", rule="every 300s", queue="q", codec="raw", priority=1000, max_attempts=1)

    revision = await store.write_schedule(schedule, expected=None)

    assert revision is not None
    assert await kept(store, "s") == replace(schedule, revision=revision)


@pytest.mark.parametrize("payload", [b"", bytes(range(256)), b"\x00" * 3, b"x" * MAX_PAYLOAD])
async def test_any_payload_of_a_schedule_is_kept(store: Store, payload: bytes) -> None:
    await store.write_schedule(replace(a_schedule("s"), payload=payload), expected=None)

    assert (await kept(store, "s")).payload == payload


@pytest.mark.parametrize("catch_up", ["one", "none", "all"])
@pytest.mark.parametrize("overlap", ["allow", "skip"])
async def test_what_a_schedule_does_about_missed_and_overlapping_runs_is_kept(
    store: Store, catch_up: CatchUp, overlap: Overlap
) -> None:
    await store.write_schedule(replace(a_schedule("s"), catch_up=catch_up, overlap=overlap), expected=None)

    schedule = await kept(store, "s")
    assert (schedule.catch_up, schedule.overlap) == (catch_up, overlap)


async def test_whether_a_schedule_is_orphaned_is_not_kept(store: Store) -> None:
    await store.write_schedule(replace(a_schedule("s"), orphaned=True), expected=None)

    assert not (await kept(store, "s")).orphaned


async def test_each_write_of_a_schedule_has_a_revision_of_its_own(store: Store) -> None:
    one = await written(store, a_schedule("one"))
    two = await written(store, a_schedule("two"))

    again = await store.write_schedule(one, expected=one.revision)

    assert len({one.revision, two.revision, again}) == 3


async def test_a_schedule_is_replaced_by_whoever_knows_its_revision(
    store: Store, clock: FakeClock, reach: Reach
) -> None:
    before = await written(store, a_schedule("s", clock.now() + HOUR))
    other = replace(before, rule="every 60s", payload=b"other", next_run_at=clock.now() + MINUTE)
    other = replace(other, queue=reach.queue("other"))

    revision = await store.write_schedule(other, expected=before.revision)

    assert revision is not None
    assert await kept(store, "s") == replace(other, revision=revision)
    assert len((await store.schedules()).schedules) == 1


async def test_a_write_with_an_older_revision_changes_nothing(store: Store) -> None:
    before = await written(store, a_schedule("s"))
    await store.write_schedule(replace(before, rule="every 60s"), expected=before.revision)
    now = await kept(store, "s")

    assert await store.write_schedule(replace(before, rule="every 1s"), expected=before.revision) is None

    assert await kept(store, "s") == now


async def test_a_schedule_that_is_there_is_not_new(store: Store) -> None:
    before = await written(store, a_schedule("s"))

    assert await store.write_schedule(replace(before, rule="every 1s"), expected=None) is None

    assert await kept(store, "s") == before


async def test_a_schedule_that_is_not_there_has_no_revision(store: Store) -> None:
    other = await written(store, a_schedule("other"))

    assert await store.write_schedule(a_schedule("s"), expected=other.revision) is None

    assert [schedule.id for schedule in (await store.schedules()).schedules] == ["other"]


async def test_of_rivals_with_one_revision_one_writes(store: Store) -> None:
    before = await written(store, a_schedule("s"))
    rules = [f"every {n}s" for n in range(1, 11)]

    revisions = await asyncio.gather(
        *(store.write_schedule(replace(before, rule=rule), expected=before.revision) for rule in rules)
    )

    won = [(rule, revision) for rule, revision in zip(rules, revisions, strict=True) if revision is not None]
    schedule = await kept(store, "s")
    assert won == [(schedule.rule, schedule.revision)]


async def test_of_rivals_that_put_a_new_schedule_one_does(store: Store) -> None:
    revisions = await asyncio.gather(*(store.write_schedule(a_schedule("s"), expected=None) for _ in range(10)))

    assert len([revision for revision in revisions if revision is not None]) == 1


async def test_a_removed_schedule_is_gone(store: Store, clock: FakeClock) -> None:
    await written(store, a_schedule("s", clock.now()))
    await written(store, a_schedule("other", clock.now() + HOUR))

    assert await store.remove_schedule("s")

    assert [schedule.id for schedule in (await store.schedules()).schedules] == ["other"]
    assert await store.due_schedules([], limit=MANY) == (clock.now(), [], clock.now() + HOUR)


async def test_a_schedule_that_is_not_there_is_not_removed(store: Store) -> None:
    await written(store, a_schedule("s"))
    await store.remove_schedule("s")

    assert not await store.remove_schedule("s")
    assert not await store.remove_schedule("never")


async def test_a_schedule_that_was_removed_and_put_again_has_no_revision_of_before(store: Store) -> None:
    revisions: list[int] = []
    for _ in range(3):
        revisions.append((await written(store, a_schedule("s"))).revision)
        await store.remove_schedule("s")
    now = await written(store, a_schedule("s"))

    assert now.revision not in revisions
    for revision in revisions:
        assert await store.write_schedule(replace(now, rule="every 1s"), expected=revision) is None


async def test_schedules_are_listed_in_order_of_id_with_the_stores_time(store: Store, clock: FakeClock) -> None:
    for name in ("b", "a:2", "a", "B", "c", "a.2"):
        await written(store, a_schedule(name))

    now, schedules = await store.schedules()

    assert now == clock.now()
    assert [schedule.id for schedule in schedules] == ["B", "a", "a.2", "a:2", "b", "c"]


async def test_schedules_are_found_by_their_ids(store: Store, clock: FakeClock) -> None:
    for name in ("a", "b", "c", "d"):
        await written(store, a_schedule(name))

    now, schedules = await store.schedules(["d", "unknown", "b", "d"])

    assert now == clock.now()
    assert [schedule.id for schedule in schedules] == ["b", "d"]
    assert (await store.schedules([])).schedules == []


async def test_a_store_without_schedules_tells_its_time(store: Store, clock: FakeClock) -> None:
    assert await store.schedules() == (clock.now(), [])
    assert await store.due_schedules(["unknown"], limit=MANY) == (clock.now(), [], None)


async def test_a_schedule_is_seen_through_every_door(new_store: Callable[[], Store], store: Store) -> None:
    schedule = await written(store, a_schedule("s"))
    other = new_store()
    await other.open()

    seen = await kept(other, "s")

    await other.close()
    assert seen == schedule


async def test_schedules_are_due_from_their_time_on(store: Store, clock: FakeClock) -> None:
    schedule = await written(store, a_schedule("s", clock.now() + MINUTE))
    assert await store.due_schedules([], limit=MANY) == (clock.now(), [], clock.now() + MINUTE)

    clock.advance(MINUTE)

    assert await store.due_schedules([], limit=MANY) == (clock.now(), [schedule], None)


async def test_the_schedule_that_is_due_for_longest_comes_first(store: Store, clock: FakeClock) -> None:
    for name, ago in [("c", 1), ("b", 3), ("d", 2), ("a", 3), ("e", 0)]:
        await written(store, a_schedule(name, clock.now() - ago * SECOND))

    due = (await store.due_schedules([], limit=MANY)).due

    assert [schedule.id for schedule in due] == ["a", "b", "d", "c", "e"]


async def test_no_more_due_schedules_are_given_than_wanted(store: Store, clock: FakeClock) -> None:
    begin = clock.now()
    for n in range(5):
        await written(store, a_schedule(f"s{n}", begin - (5 - n) * SECOND))

    some = await store.due_schedules([], limit=3)

    assert [schedule.id for schedule in some.due] == ["s0", "s1", "s2"]
    assert some.next_run_at == begin - 2 * SECOND
    assert await store.due_schedules([], limit=0) == (begin, [], begin - 5 * SECOND)


async def test_the_next_time_is_that_of_the_first_that_is_not_due(store: Store, clock: FakeClock) -> None:
    for name, later in [("far", DAY), ("near", HOUR), ("due", -SECOND), ("never", None)]:
        await written(store, a_schedule(name, None if later is None else clock.now() + later))

    found = await store.due_schedules([], limit=1)

    assert [schedule.id for schedule in found.due] == ["due"]
    assert found.next_run_at == clock.now() + HOUR


async def test_a_schedule_that_code_declares_counts_only_for_whoever_declares_it(
    store: Store, clock: FakeClock
) -> None:
    for name, later in [("mine", SECOND), ("theirs", -SECOND), ("other", -MINUTE)]:
        await written(store, a_schedule(name, clock.now() + later, declared=True))
    await written(store, a_schedule("stored", clock.now() + HOUR))

    assert await store.due_schedules([], limit=MANY) == (clock.now(), [], clock.now() + HOUR)
    assert await store.due_schedules(["mine"], limit=MANY) == (clock.now(), [], clock.now() + SECOND)
    found = await store.due_schedules(["unknown", "theirs", "stored"], limit=MANY)
    assert [schedule.id for schedule in found.due] == ["theirs"]
    assert found.next_run_at == clock.now() + HOUR


async def test_a_schedule_that_is_not_declared_is_due_once_for_whoever_thinks_it_is(
    store: Store, clock: FakeClock
) -> None:
    schedule = await written(store, a_schedule("s", clock.now()))

    assert await store.due_schedules(["s"], limit=MANY) == (clock.now(), [schedule], None)


async def test_declared_schedules_and_others_are_due_in_one_order(store: Store, clock: FakeClock) -> None:
    for n in range(6):
        await written(store, a_schedule(f"s{n}", clock.now() - (6 - n) * SECOND, declared=n % 2 == 0))

    found = await store.due_schedules({"s0", "s2", "s4"}, limit=4)

    assert [schedule.id for schedule in found.due] == ["s0", "s1", "s2", "s3"]
    assert found.next_run_at == clock.now() - 2 * SECOND


async def test_a_paused_schedule_is_not_due(store: Store, clock: FakeClock) -> None:
    for declared in (False, True):
        await written(store, a_schedule(f"past{declared}", clock.now() - SECOND, paused=True, declared=declared))
        await written(store, a_schedule(f"next{declared}", clock.now() + SECOND, paused=True, declared=declared))

    assert await store.due_schedules(["pastTrue", "nextTrue"], limit=MANY) == (clock.now(), [], None)


async def test_a_schedule_that_goes_on_is_due_again(store: Store, clock: FakeClock) -> None:
    paused = await written(store, a_schedule("s", clock.now(), paused=True))

    await store.write_schedule(replace(paused, paused=False), expected=paused.revision)

    assert [schedule.id for schedule in (await store.due_schedules([], limit=MANY)).due] == ["s"]


async def test_a_schedule_that_is_put_is_news(store: Store) -> None:
    if not store.features.wakes_waiters:
        return

    with listening(store, SCHEDULES) as told:
        await store.write_schedule(a_schedule("s"), expected=None)

        await soon(told.wait())


async def test_a_schedule_that_is_removed_is_news(store: Store) -> None:
    await written(store, a_schedule("s"))
    if not store.features.wakes_waiters:
        return

    with listening(store, SCHEDULES) as told:
        await store.remove_schedule("s")

        await soon(told.wait())


async def test_schedules_stay_when_the_store_is_opened_again(new_store: Callable[[], Store], store: Store) -> None:
    if not store.features.survives_process:
        return
    first = new_store()
    await first.open()
    schedule = await written(first, replace(a_schedule("s"), last_job_id=UNKNOWN))
    await first.close()

    again = new_store()
    await again.open()

    assert await kept(again, "s") == schedule
    assert await again.write_schedule(a_schedule("t"), expected=None) != schedule.revision
    await again.close()
