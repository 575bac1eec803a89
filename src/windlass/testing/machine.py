"""A state machine that drives a store beside the model, with old tokens, and compares everything after each step.

A test of a store says where a fresh one comes from:

    @contextmanager
    def fresh() -> Iterator[Place]:
        with TemporaryDirectory() as folder:
            yield lambda clock, rng: MyStore(f"{folder}/jobs", clock=clock, rng=rng)

    def test_my_store_does_what_the_model_does() -> None:
        run_machine(fresh)

It needs Hypothesis. `WINDLASS_EXAMPLES` says how many examples to run.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

from hypothesis import HealthCheck, settings, stateful
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from windlass.core.clock import Clock, Rng
from windlass.core.errors import UniqueConflict
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import NO_HEADERS, Claim, Enqueued, Failure, Job, Note, PreparedJob, Progress, Token
from windlass.core.retention import Keep, Retention
from windlass.core.states import State
from windlass.core.stats import QueueStats, Totals
from windlass.core.store import (
    ClaimRequest,
    KvAny,
    KvWrite,
    RescueRequest,
    Settled,
    Settlement,
    SettleResult,
    Store,
)
from windlass.core.unique import Unique, hold
from windlass.core.verdict import ToCancelled, ToDead, ToReleased, ToRetry, ToSnoozed, ToSucceeded, Verdict
from windlass.testing.clock import FakeClock
from windlass.testing.model import Model
from windlass.testing.rng import SeededRng

T = TypeVar("T")
Place: TypeAlias = Callable[[Clock, Rng], Store]
"""Makes a store, not open yet, in one place: a second one made there finds the jobs of the first."""
Fresh: TypeAlias = Callable[[], AbstractContextManager[Place]]

EXAMPLES: Final = int(os.environ.get("WINDLASS_EXAMPLES", "100"))
STEPS: Final = 50
MANY: Final = 1_000_000

queues = st.sampled_from(["a", "b"])
kinds = st.sampled_from([None, "x", "y"])
payloads = st.sampled_from([b"", b"one", b"two"])
seconds = st.sampled_from([0, 1, 5, 30, 90]).map(lambda n: timedelta(seconds=n))
picks = st.integers(0, 40)
keys = st.sampled_from([b"k", b"k\x00", b"\xff", b"kk"])
values = st.sampled_from([None, b"", b"v", b"w"])
pairs = st.dictionaries(keys, values, max_size=2)
workers = st.sampled_from(["w1", "w2", "w3"])

uniques = st.builds(
    Unique,
    key=st.sampled_from(["k1", "k2"]),
    scope=st.sampled_from(["queue", "kind", "global"]),
    until=st.sampled_from(["claimed", "claimed", "finished", timedelta(seconds=20)]),
    on_conflict=st.sampled_from(["keep", "keep", "raise"]),
    match_payload=st.booleans(),
) | st.builds(Unique, key=st.sampled_from(["k1", "k2"]), on_conflict=st.just("replace"))

failures = st.builds(Failure, message=st.sampled_from(["boom", "café"]), type=st.sampled_from([None, "ValueError"]))
verdicts: st.SearchStrategy[Verdict] = st.one_of(
    st.builds(ToSucceeded, result=st.sampled_from([None, b"done"]), codec=st.just("raw")),
    st.builds(ToRetry, delay=seconds, failure=failures),
    st.builds(ToDead, failure=failures),
    st.builds(ToSnoozed, delay=seconds),
    st.builds(ToReleased, started=st.booleans()),
    st.builds(ToCancelled, reason=st.just("not wanted")),
)

keeps = st.sampled_from([None, timedelta(0), timedelta(seconds=10), timedelta(minutes=2)])
retentions = st.builds(
    Retention,
    default=st.builds(Keep, succeeded=keeps, dead=keeps, cancelled=keeps),
    queues=st.dictionaries(queues, st.builds(Keep, succeeded=keeps, dead=keeps, cancelled=keeps), max_size=1),
    most=st.sampled_from([None, None, 0, 1, 3]),
)


@st.composite
def prepared_jobs(draw: st.DrawFn) -> PreparedJob:
    """Draw a job with a fresh id; the machine may give it one that was used before."""
    queue, kind, tenant = draw(queues), draw(kinds), draw(st.sampled_from([None, None, "t"]))
    payload, unique = draw(payloads), draw(st.none() | uniques)
    return PreparedJob(
        id=JobId(str(UUID(int=draw(st.integers(1, 2**128 - 1))))),
        queue=queue,
        kind=kind,
        payload=payload,
        codec="raw",
        headers=draw(st.sampled_from([NO_HEADERS, {"trace": "ü"}])),
        tenant=tenant,
        priority=draw(st.sampled_from([100, 1000])),
        max_attempts=draw(st.integers(1, 3)),
        run_at=None,
        delay=draw(st.none() | seconds),
        unique=None if unique is None else hold(unique, queue=queue, kind=kind, tenant=tenant, payload=payload),
        kv=draw(pairs),
    )


requests = st.builds(
    ClaimRequest,
    queues=st.sampled_from([["a"], ["b"], ["a", "b"], ["b", "a"], []]),
    limit=st.integers(0, 5),
    lease=seconds,
    kinds=st.sampled_from([None, None, None, ["x"], ["x", "y"]]),
    worker=workers,
)


class Ending(NamedTuple):
    """How one of the claims, of any age, is to be settled."""

    pick: int
    verdict: Verdict
    keep: bool
    then: Sequence[PreparedJob]
    kv: Mapping[bytes, bytes | None]


endings = st.builds(Ending, picks, verdicts, st.booleans(), st.lists(prepared_jobs(), max_size=2), pairs)


class StoreMachine(RuleBasedStateMachine):
    """One store, one model, three workers, and every claim that was ever given."""

    def __init__(self, fresh: Fresh) -> None:
        """Open a fresh store."""
        super().__init__()
        self.clock = FakeClock()
        self.model = Model(self.clock.now())
        self.claims: list[tuple[JobId, Token]] = []
        self.ids: list[JobId] = []
        self.calls = 0
        self.runner = asyncio.Runner()
        self.where: AbstractContextManager[Place] = fresh()
        self.place: Place = self.where.__enter__()
        self.rng = SeededRng()
        self.store: Store = self.place(self.clock, self.rng)
        self.run(self.store.open())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do one call of the store."""
        return self.runner.run(work)

    def teardown(self) -> None:
        """Close the store, whatever happened."""
        try:
            self.run(self.store.close())
        finally:
            self.runner.close()
            self.where.__exit__(None, None, None)

    @rule(jobs=st.lists(prepared_jobs(), max_size=4), same=st.none() | picks, repeat=st.booleans())
    def enqueue(self, jobs: list[PreparedJob], same: int | None, *, repeat: bool) -> None:
        """Enqueue a batch, maybe with an id that was used before, maybe twice by one request."""
        if jobs and self.ids and same is not None:
            jobs[-1] = jobs[-1]._replace(id=self._pick(same))
        request_id = self._request_id()
        expected = _outcome(lambda: self.model.enqueue(jobs))

        for _ in range(2 if repeat else 1):
            assert self._enqueued(jobs, request_id) == expected

        self.ids += [job.id for job in jobs if job.id not in self.ids]

    def _enqueued(self, jobs: Sequence[PreparedJob], request_id: str) -> list[Enqueued] | str:
        return _outcome(lambda: self.run(self.store.enqueue(jobs, request_id=request_id)))

    @rule(request=requests, repeat=st.booleans())
    def claim(self, request: ClaimRequest, *, repeat: bool) -> None:
        """Claim, maybe twice by one request: the second time gives the same claims."""
        request_id = self._request_id()
        expected = self.model.claim(request)

        given = self.run(self.store.claim(request, request_id=request_id))

        assert [claim.job.id for claim in given] == [record.job.id for record in expected]
        assert not {claim.token for claim in given} & {token for _, token in self.claims}
        assert len({claim.token for claim in given}) == len(given)
        if repeat:
            again = self.run(self.store.claim(request, request_id=request_id))
            assert [_proof(claim) for claim in again] == [_proof(claim) for claim in given]
        for claim, record in zip(given, expected, strict=True):
            self.model.give(record, claim.token, request)
            assert _visible(claim.job) == _visible(record.job)
        self.claims += [_proof(claim) for claim in given]

    @precondition(lambda self: self.claims)
    @rule(several=st.lists(endings, min_size=1, max_size=4), repeat=st.booleans())
    def settle(self, several: list[Ending], *, repeat: bool) -> None:
        """Settle claims of any age, in one batch."""
        batch = list(map(self._settlement, several))
        request_id = self._request_id()
        expected = [self.model.settle(each) for each in batch]

        answers = self.run(self.store.settle(batch, request_id=request_id))

        self._assert_settled(batch, answers, expected)
        if repeat:
            again = self.run(self.store.settle(batch, request_id=request_id))
            assert list(map(_name, again)) == list(map(_name, answers))
        self.ids += [job.id for each in batch for job in each.then if job.id not in self.ids]

    def _settlement(self, ending: Ending) -> Settlement:
        job_id, token = self._claimed(ending.pick)
        if not isinstance(ending.verdict, ToRetry):
            return Settlement(job_id, token, *ending[1:])
        # whoever decides on a retry has an attempt left, and keeps what is meant for the end of the job
        record = self.model.jobs.get(job_id)
        if record is not None and record.job.attempt >= record.job.max_attempts:
            return Settlement(job_id, token, ToDead(ending.verdict.failure), *ending[2:])
        return Settlement(job_id, token, ending.verdict, ending.keep)

    def _assert_settled(
        self, batch: Sequence[Settlement], answers: Sequence[SettleResult], expected: Sequence[SettleResult]
    ) -> None:
        assert len(answers) == len(expected)
        for settlement, answer, wanted in zip(batch, answers, expected, strict=True):
            forgotten = wanted is Settled.LOST and settlement.token in self.model.gone
            allowed = {"LOST", "REPEATED"} if forgotten else {_name(wanted)}
            assert _name(answer) in allowed, settlement

    @precondition(lambda self: self.claims)
    @rule(chosen=st.lists(picks, min_size=1, max_size=3), lease=seconds)
    def renew(self, chosen: list[int], lease: timedelta) -> None:
        """Renew claims of any age."""
        held = [self._claimed(pick) for pick in chosen]
        expected = [self.model.renew(job_id, token, lease) for job_id, token in held]

        answers = self.run(self.store.renew(held, lease))

        assert [answer is not None for answer in answers] == expected
        for (job_id, _), answer in zip(held, answers, strict=True):
            job = self.model.jobs[job_id].job if answer is not None else None
            assert answer is None or (job and tuple(answer) == (job.lease_expires_at, job.cancel_requested))

    @precondition(lambda self: self.claims)
    @rule(
        pick=picks,
        progress=st.none() | st.builds(Progress, done=st.integers(0, 3), total=st.sampled_from([None, 3])),
        lines=st.lists(st.tuples(st.just("info"), st.sampled_from(["begun", "ü"])), max_size=2),
    )
    def note(self, pick: int, progress: Progress | None, lines: list[tuple[str, str]]) -> None:
        """Report with a claim of any age."""
        job_id, token = self._claimed(pick)
        note = Note(job_id, token, progress, lines)

        assert self.run(self.store.note([note])) == [self.model.note(note)]

    @precondition(lambda self: self.ids)
    @rule(chosen=st.lists(picks, min_size=1, max_size=3), retention=retentions)
    def cancel(self, chosen: list[int], retention: Retention) -> None:
        """Cancel jobs in any state."""
        ids = list(map(self._pick, chosen))
        expected = [self.model.cancel(job_id, retention) for job_id in ids]

        assert self.run(self.store.cancel(ids, retention)) == expected

    @precondition(lambda self: self.ids)
    @rule(chosen=st.lists(picks, min_size=1, max_size=3))
    def retry(self, chosen: list[int]) -> None:
        """Retry jobs in any state."""
        ids = list(map(self._pick, chosen))
        expected = [self.model.retry(job_id) for job_id in ids]

        assert self.run(self.store.retry(ids)) == expected

    @precondition(lambda self: self.ids)
    @rule(chosen=st.lists(picks, min_size=1, max_size=3))
    def delete(self, chosen: list[int]) -> None:
        """Delete jobs in any state."""
        ids = list(map(self._pick, chosen))
        expected = [self.model.delete(job_id) for job_id in ids]

        assert self.run(self.store.delete(ids)) == expected

    @precondition(lambda self: self.ids)
    @rule(pick=picks, by=st.none() | st.sampled_from([-10, 0, 7]))
    def reschedule(self, pick: int, by: int | None) -> None:
        """Give a job another time, past or to come."""
        job_id = self._pick(pick)
        run_at = None if by is None else self.clock.now() + timedelta(seconds=by)

        assert self.run(self.store.reschedule([job_id], run_at)) == [self.model.reschedule(job_id, run_at)]

    @rule(queue=queues, paused=st.booleans())
    def pause(self, queue: str, *, paused: bool) -> None:
        """Pause or resume a queue, known or not."""
        self.model.paused[queue] = paused

        self.run(self.store.set_paused(queue, paused=paused))

    @rule(
        request=st.builds(
            RescueRequest,
            queues=st.sampled_from([None, None, ["a"], ["a", "b"], []]),
            workers=st.sampled_from([None, None, ["w1"], ["w2", "w3"]]),
            force=st.booleans(),
            to=st.sampled_from(["retry", "retry", "dead"]),
            limit=st.just(MANY),
        ),
        retention=retentions,
    )
    def rescue(self, request: RescueRequest, retention: Retention) -> None:
        """Take back claims."""
        expected = self.model.rescue(request, retention)

        assert sorted(self.run(self.store.rescue(request, retention))) == sorted(expected)

    @rule()
    def promote(self) -> None:
        """Promote everything that is due: afterwards nothing that is due is called scheduled."""
        self.model.promote()

        self.run(self.store.promote(limit=MANY))

        for job in self._listing():
            assert job.state is not State.SCHEDULED or job.run_at > self.clock.now()

    @rule(retention=retentions)
    def prune(self, retention: Retention) -> None:
        """Prune everything that is past its retention."""
        before = {job.id for job in self._listing()}

        count = self.run(self.store.prune(retention, limit=MANY))

        removed = before - {job.id for job in self._listing()}
        assert len(removed) == count
        assert self.model.prune(removed, retention)

    @rule(key=keys, value=values, expected=st.just(KvAny.ANY) | values)
    def kv_write(self, key: bytes, value: bytes | None, expected: bytes | KvAny | None) -> None:
        """Write a value, with or without a condition."""
        write = KvWrite(key, value, expected)

        assert self.run(self.store.kv_write(write)) == self.model.kv_write(write)

    @rule(name=st.sampled_from(["l1", "l2"]), holder=workers, ttl=seconds)
    def lock(self, name: str, holder: str, ttl: timedelta) -> None:
        """Take, renew or fail to take a lock."""
        assert self.run(self.store.lock(name, holder, ttl)) == self.model.lock(name, holder, ttl)

    @rule(name=st.sampled_from(["l1", "l2"]), holder=workers)
    def unlock(self, name: str, holder: str) -> None:
        """Let go of a lock that may be another's or over."""
        assert self.run(self.store.unlock(name, holder)) == self.model.unlock(name, holder)

    @rule(by=st.sampled_from([1, 4, 5, 25, 61]))
    def advance(self, by: int) -> None:
        """Let time go by."""
        self.clock.advance(by)
        self.model.now = self.clock.now()

    @precondition(lambda self: self.store.features.survives_process)
    @rule()
    def reopen(self) -> None:
        """Close the store and open it again in its place."""
        self.run(self.store.close())
        self.store = self.place(self.clock, self.rng)
        self.run(self.store.open())

    @invariant()
    def everything_is_as_the_model_says(self) -> None:
        """Read everything back, in every way that a store can be read."""
        self._jobs_are_as_the_model_says()
        self._holders_are_as_the_model_says()
        self._counts_add_up()
        self._minutes_add_up()
        self._values_are_as_the_model_says()

    def _jobs_are_as_the_model_says(self) -> None:
        """Read everything back (I1 to I8)."""
        wanted = sorted((self._now_seen(record.job) for record in self.model.jobs.values()), key=lambda job: job.seq)
        listed = [self._now_seen(job) for job in self._listing()]
        read = self.run(self.store.get(self.ids))

        assert [_visible(job) for job in listed] == [_visible(job) for job in wanted]
        assert [job.seq for job in listed] == sorted({job.seq for job in listed})
        for job_id, job in zip(self.ids, read, strict=True):
            record = self.model.jobs.get(job_id)
            assert (job is None) == (record is None)
            if job is not None and record is not None:
                assert _in_full(self._now_seen(job)) == _in_full(self._now_seen(record.job))
                assert job.attempt <= job.max_attempts

    def _holders_are_as_the_model_says(self) -> None:
        """Look at the jobs as waiters do: a token is held by a running job alone."""
        seen = self.run(self.store.glance(self.ids))

        assert set(seen) == set(self.model.jobs)
        for job_id, glance in seen.items():
            record = self.model.jobs[job_id]
            token = glance.token if glance.state is State.RUNNING else None
            assert (glance.cancel_requested, token) == (record.job.cancel_requested, record.token)

    def _counts_add_up(self) -> None:
        """Count by state (I13), and compare what ever happened."""
        listed = self._listing()
        stats = {row.queue or "": row for row in self.run(self.store.stats())}

        assert list(stats) == sorted(self.model.paused)
        for queue, row in stats.items():
            here = [job for job in listed if job.queue == queue]
            assert row == _counted(queue, here, paused=self.model.paused[queue], totals=self.model.totals(queue))

    def _minutes_add_up(self) -> None:
        """Compare what happened in each minute."""
        since = self.clock.now() - timedelta(days=7)
        read = self.run(self.store.minutes(since=since, until=self.clock.now() + timedelta(minutes=1)))

        assert {row[:3]: row.counts for row in read if any(row.counts)} == {
            minute: Totals(**counts) for minute, counts in self.model.counts.items()
        }

    def _values_are_as_the_model_says(self) -> None:
        """Read the caller's own keys back."""
        assert self.run(self.store.kv_scan(b"", after=None, limit=MANY)) == sorted(self.model.kv.items())

    def _listing(self) -> list[Job]:
        return self.run(self.store.jobs(JobFilter(), after=None, limit=MANY))

    def _pick(self, pick: int) -> JobId:
        return self.ids[-1 - pick % len(self.ids)]

    def _claimed(self, pick: int) -> tuple[JobId, Token]:
        return self.claims[-1 - pick % len(self.claims)]

    def _request_id(self) -> str:
        self.calls += 1
        return f"call-{self.calls}"

    def _now_seen(self, job: Job) -> Job:
        # a store may promote without a write, when it claims
        due = job.state is State.SCHEDULED and job.run_at <= self.clock.now()
        return job._replace(state=State.PENDING) if due else job


def run_machine(fresh: Fresh, *, examples: int = EXAMPLES, steps: int = STEPS) -> None:
    """Drive a store from `fresh` through each example; raise what the shortest failing one raised."""
    # one example is hundreds of calls, and each may wait for a disk
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
    # its own types are not complete
    hypothesis: Any = stateful
    hypothesis.run_state_machine_as_test(
        lambda: StoreMachine(fresh),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=slow,
            print_blob=True,
            report_multiple_bugs=False,
        ),
    )


def _outcome(call: Callable[[], T]) -> T | str:
    try:
        return call()
    except UniqueConflict:
        return "UniqueConflict"


def _proof(claim: Claim) -> tuple[JobId, Token]:
    return claim.job.id, claim.token


def _name(answer: SettleResult) -> str:
    return answer.name if isinstance(answer, Settled) else type(answer).__name__


def _visible(job: Job) -> Job:
    """Leave out what is the store's own (the sequence number) and what only `get` fills."""
    return job._replace(seq=0, headers=dict(job.headers), history=(), log=())


def _in_full(job: Job) -> Job:
    # why a delivery was rescued or cancelled is told by the job's last error
    history = tuple(each if each.outcome == "failed" else each._replace(failure=None) for each in job.history)
    return job._replace(seq=0, headers=dict(job.headers), history=history)


def _counted(queue: str, jobs: Sequence[Job], *, paused: bool, totals: Totals) -> QueueStats:
    waiting = [job.run_at for job in jobs if job.state is State.PENDING]
    states = Counter(job.state for job in jobs)
    return QueueStats(
        queue=queue,
        paused=paused,
        scheduled=states[State.SCHEDULED],
        pending=states[State.PENDING],
        running=states[State.RUNNING],
        succeeded=states[State.SUCCEEDED],
        dead=states[State.DEAD],
        cancelled=states[State.CANCELLED],
        oldest_waiting=min(waiting, default=None),
        totals=totals,
    )
