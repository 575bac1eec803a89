"""Jobs are found by their kind, parent, key, type of error and what they carry, alone and together."""

from dataclasses import replace
from typing import Final

from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Failure, PreparedJob
from windlass.core.requests import ClaimRequest
from windlass.core.retention import KEEP_ALL
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.core.verdict import ToDead
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.given import HOUR, SECOND, a_job, claim_one, enqueue_each, settlement

ALL: Final = 1_000_000
LONG_TYPE: Final = "errors." * 20 + "Refused"


async def _found(store: Store, chosen: JobFilter) -> list[bytes]:
    """Return the payloads of those that are chosen, up to a space, which both ways to look must agree on."""
    jobs = await store.jobs(chosen, after=None, limit=ALL)
    newest = await store.newest(chosen, before=None, limit=ALL, most=ALL)
    assert newest.jobs == jobs[::-1]
    assert newest.next is None
    return [job.payload.partition(b" ")[0] for job in jobs]


async def test_jobs_are_chosen_by_the_job_that_made_them(store: Store) -> None:
    parent, other = a_job(payload=b"1"), a_job(payload=b"2")
    children = [a_job(payload=payload)._replace(parent_id=parent.id) for payload in (b"3", b"4")]
    await store.enqueue([parent, other, *children, a_job(payload=b"5")._replace(parent_id=other.id)])

    assert await _found(store, JobFilter(parent_id=parent.id)) == [b"3", b"4"]
    assert await _found(store, JobFilter(parent_id=parent.id.upper())) == [b"3", b"4"]
    assert await _found(store, JobFilter(parent_id=children[0].id)) == []


async def test_jobs_are_chosen_by_their_unique_key(store: Store) -> None:
    await enqueue_each(
        store,
        a_job(payload=b"1", unique=Unique("order:42", until="finished")),
        a_job(payload=b"2", unique=Unique("order:4")),
        a_job("sms", payload=b"3", unique=Unique("order:42")),
        a_job(payload=b"4"),
    )
    await claim_one(store)

    assert await _found(store, JobFilter(unique_key="order:42")) == [b"1", b"3"]
    assert await _found(store, JobFilter(unique_key="order")) == []


async def _dead(store: Store, job: PreparedJob, failure: Failure) -> None:
    await store.enqueue([job])
    await store.settle([settlement(await claim_one(store), ToDead(failure))])


async def test_jobs_are_chosen_by_the_type_of_their_last_error(store: Store) -> None:
    failures = (
        Failure("no route: 5 tries", "ValueError"),
        Failure("ValueError"),
        Failure("x", "ValueErrors"),
        Failure("it was ValueError: no", "app:ValueError"),
        Failure("x", LONG_TYPE),
        Failure("x", f"{LONG_TYPE}2"),
        Failure("a" * 100_000, "Über'50%_\\"),
    )
    for number, failure in enumerate(failures, start=1):
        await _dead(store, a_job(payload=str(number).encode()), failure)
    await store.enqueue([a_job(payload=b"8")])

    assert await _found(store, JobFilter(error_type="ValueError")) == [b"1", b"2"]
    assert await _found(store, JobFilter(error_type="app:ValueError")) == [b"4"]
    assert await _found(store, JobFilter(error_type="app")) == [b"4"]
    assert await _found(store, JobFilter(error_type=LONG_TYPE)) == [b"5"]
    assert await _found(store, JobFilter(error_type="Über'50%_\\")) == [b"7"]
    for nobody in ("Value", "valueerror", "ValueError:", "%", "a" * 100):
        assert await _found(store, JobFilter(error_type=nobody)) == [], nobody


async def test_jobs_are_chosen_by_a_text_in_their_payload(store: Store) -> None:
    large = b"3 " + b"." * 5_000 + '{"to": "Zoë"}'.encode()
    given = (b'1 {"to": "ada"}', b"2 \xff\x00ada\xfe", large, b"")
    await store.enqueue([a_job(payload=payload) for payload in given])

    assert await _found(store, JobFilter(payload_text="ada")) == [b"1", b"2"]
    assert await _found(store, JobFilter(payload_text='"ada"')) == [b"1"]
    assert await _found(store, JobFilter(payload_text="Zoë")) == [b"3"]
    # the bytes of the payload are looked at, and nothing that is kept beside them
    for nobody in ("Ada", "raw", "ZOË", "%", ".*ada", "default"):
        assert await _found(store, JobFilter(payload_text=nobody)) == [], nobody


async def test_what_jobs_are_found_by_is_all_true_of_them(store: Store) -> None:
    parent = a_job(payload=b"0")
    await store.enqueue([parent])
    await store.settle([settlement(await claim_one(store))])
    mail = a_job(kind="mail")._replace(parent_id=parent.id, tenant="acme")
    boom = Failure("x", "Boom")
    await _dead(store, _copy(mail, b"1 here"), boom)
    await _dead(store, _copy(mail, b"2 here")._replace(kind="sms"), boom)
    await _dead(store, _copy(mail, b"3 gone"), boom)
    await _dead(store, _copy(mail, b"4 here"), Failure("no Boom: x", "Bang"))
    await _dead(store, _copy(mail, b"5 here")._replace(parent_id=None), boom)
    await store.enqueue([_copy(mail, b"6 here")])
    mine = JobFilter(parent_id=parent.id, tenant="acme", kind="mail")
    every = replace(mine, error_type="Boom", payload_text="here")

    assert await _found(store, mine) == [b"1", b"3", b"4", b"6"]
    assert await _found(store, every) == [b"1"]
    assert await _found(store, replace(every, queue="default", state=State.DEAD)) == [b"1"]
    assert await _found(store, replace(every, state=State.PENDING)) == []


def _copy(job: PreparedJob, payload: bytes) -> PreparedJob:
    return job._replace(id=a_job().id, payload=payload)


async def test_those_that_are_found_by_a_field_are_on_one_page_each_however_far_apart_they_are(store: Store) -> None:
    parent = a_job()
    wanted = [_alike(parent, number) for number in range(5)]
    jobs = [job for one in wanted for job in (one, *(a_job(kind="mail") for _ in range(25)))]
    await store.enqueue([parent, *jobs])
    rare = ClaimRequest(("default",), 2, HOUR, ["rare"], None)
    dead, _ = (await store.claim(rare)).jobs
    await store.settle([settlement(dead, ToDead(Failure("x", "Boom")))])
    alike = (
        JobFilter(parent_id=parent.id),
        JobFilter(tenant="acme"),
        JobFilter(kind="rare"),
        JobFilter(payload_text="needle"),
        JobFilter(tenant="acme", kind="rare"),
    )

    for chosen in alike:
        assert await _walked(store, chosen) == [job.id for job in wanted[::-1]], chosen
    assert await _walked(store, JobFilter(error_type="Boom")) == [dead.job.id]
    assert await _walked(store, JobFilter(unique_key="key-3")) == [wanted[3].id]
    assert await _walked(store, JobFilter(tenant="acme", state=State.SCHEDULED)) == [wanted[2].id]


def _alike(parent: PreparedJob, number: int) -> PreparedJob:
    delay = HOUR if number == 2 else None
    job = a_job(payload=b"a needle in it", kind="rare", unique=Unique(f"key-{number}"), delay=delay)
    return job._replace(parent_id=parent.id, tenant="acme")


async def test_those_of_a_kind_are_found_far_apart_whatever_they_are_doing(store: Store, clock: FakeClock) -> None:
    wanted = [a_job(("a", "b")[n % 2], kind="rare", delay=HOUR if n == 5 else None) for n in range(8)]
    for job in wanted:
        await store.enqueue([job])
        await store.enqueue([a_job(kind="mail") for _ in range(25)])
        clock.advance(SECOND)
    done, dead, running = (await store.claim(ClaimRequest(("a", "b"), 3, HOUR, ["rare"], None))).jobs
    await store.settle([settlement(done), settlement(dead, ToDead(Failure("x", "Boom")))])
    await store.cancel([wanted[7].id], KEEP_ALL)
    newest = [job.id for job in wanted[::-1]]
    others = {
        State.SUCCEEDED: done.job.id,
        State.DEAD: dead.job.id,
        State.RUNNING: running.job.id,
        State.SCHEDULED: wanted[5].id,
        State.CANCELLED: wanted[7].id,
    }
    pending = [job_id for job_id in newest if job_id not in others.values()]

    assert await _walked(store, JobFilter(kind="rare")) == newest
    assert await _walked(store, JobFilter(kind="rare", queue="b")) == newest[::2]
    assert await _walked(store, JobFilter(kind="rare", state=State.PENDING)) == pending
    for state, job_id in others.items():
        assert await _walked(store, JobFilter(kind="rare", state=state)) == [job_id], state
    assert await _walked(store, JobFilter(kind="nobody")) == []


async def _walked(store: Store, chosen: JobFilter) -> list[JobId]:
    """Return the ids of all that are chosen, page by page, with looks at few and pages of two."""
    page = await store.newest(chosen, before=None, limit=2, most=10)
    found = [job.id for job in page.jobs]
    while (before := page.next) is not None:
        page = await store.newest(chosen, before=before, limit=2, most=10)
        assert page.next is None or page.next < before
        found += [job.id for job in page.jobs]
    return found
