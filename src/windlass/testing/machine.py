"""A state machine that drives a store beside the model, with old tokens, and compares everything after each step.

A test of a store says where a fresh one comes from:

    @contextmanager
    def fresh() -> Generator[Place, None, None]:
        with TemporaryDirectory() as folder:
            yield lambda clock, rng: MyStore(f"{folder}/jobs", clock=clock, rng=rng)

    def test_my_store_does_what_the_model_does() -> None:
        run_machine(fresh)

It needs Hypothesis. `WINDLASS_EXAMPLES` says how many examples to run.
"""

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, assert_never

from hypothesis import HealthCheck, settings, stateful
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from windlass.core.errors import NotAtomicHere
from windlass.core.ids import JobId
from windlass.core.job import Job, Note, PreparedJob, Progress, Token
from windlass.core.requests import ClaimRequest, KvWrite, RescueRequest, Settlement
from windlass.core.retention import KEEP_ALL, Retention
from windlass.core.states import State
from windlass.testing import calls, draws
from windlass.testing.call import Call
from windlass.testing.calls import within_attempts
from windlass.testing.compared import Fresh, Place, View, gathered
from windlass.testing.model import Model
from windlass.testing.orders import explained
from windlass.testing.schedule_rules import ScheduleRules

__all__ = ["STEPS", "Fresh", "Place", "StoreMachine", "run_machine"]

EXAMPLES: Final = int(os.environ.get("WINDLASS_EXAMPLES", "100"))
STEPS: Final = 50


class StoreMachine(ScheduleRules):
    """One store, one model, three draws.workers, and every claim that was ever given.

    Which rules may be drawn never hangs on what a store has answered: calls made at once have no order that repeats,
    and Hypothesis holds that the same choices lead to the same rules. A rule that has nothing to do does nothing.
    """

    def __init__(self, fresh: Fresh) -> None:
        """Open a fresh store."""
        super().__init__(fresh)
        self.claims: list[calls.Held] = []
        self.tokens: set[Token] = set()
        self.requests = 0

    @initialize(jobs=st.lists(draws.prepared_jobs(), min_size=3, max_size=6), request=draws.requests)
    def begin(self, jobs: list[PreparedJob], request: ClaimRequest) -> None:
        """Begin with jobs, some of them claimed: most of what can go wrong needs that."""
        batches = [jobs] if self.model.atomic_across_queues else [[job] for job in jobs]
        for batch in batches:
            self.do(calls.enqueue(self.named(batch, far=False)))
        self._hold(self.do(calls.claim(request)))

    @rule(
        jobs=st.lists(draws.prepared_jobs(), max_size=4),
        used=draws.used_ids,
        repeat=st.booleans(),
        far=draws.far,
    )
    def enqueue(self, jobs: list[PreparedJob], used: draws.UsedId | None, *, repeat: bool, far: bool) -> None:
        """Enqueue a batch, maybe with an id that was used before, maybe twice by one request."""
        batch = self._with_used_id(self.named(jobs, far=far), used)
        self.do(calls.enqueue(batch, self._request_id()), repeat=repeat)

    @rule(request=draws.requests, repeat=st.booleans())
    def claim(self, request: ClaimRequest, *, repeat: bool) -> None:
        """Claim, maybe twice by one request: the second time gives the same claims."""
        self._hold(self.do(calls.claim(request, self._request_id()), repeat=repeat))

    @rule(several=st.lists(draws.endings, min_size=1, max_size=4), repeat=st.booleans())
    def settle(self, several: list[draws.Ending], *, repeat: bool) -> None:
        """Settle claims of any age, in one batch."""
        if not self.claims:
            return
        batch = [self._settlement(ending, self.claims) for ending in several]
        self.do(calls.settle(batch, self._request_id()), repeat=repeat)

    @rule(late=st.lists(draws.endings, min_size=1, max_size=2), timely=st.lists(draws.endings, max_size=2))
    def settle_late(self, late: list[draws.Ending], timely: list[draws.Ending]) -> None:
        """Settle with tokens of claims whose jobs are with somebody else by now, beside any others."""
        stale = self.stale()
        if not stale:
            return
        batch = [self._settlement(ending, stale) for ending in late]
        batch += [self._settlement(ending, self.claims) for ending in timely]
        self.do(calls.settle(batch))

    @rule(request=draws.requests)
    def take_over(self, request: ClaimRequest) -> None:
        """Take every claim back, and claim again: the old tokens are stale."""
        self.do(calls.rescue(RescueRequest(force=True, limit=draws.MANY), KEEP_ALL))
        self._hold(self.do(calls.claim(request)))

    @rule(chosen=st.lists(draws.picks, min_size=1, max_size=3), lease=draws.leases)
    def renew(self, chosen: list[int], lease: timedelta) -> None:
        """Renew claims of any age."""
        if self.claims:
            self.do(calls.renew(list(map(self._held, chosen)), lease))

    @rule(
        pick=draws.picks,
        progress=st.none() | st.builds(Progress, done=st.integers(0, 3), total=st.sampled_from([None, 3])),
        lines=st.lists(st.tuples(st.just("info"), st.sampled_from(["begun", "ü"])), max_size=2),
    )
    def note(self, pick: int, progress: Progress | None, lines: list[tuple[str, str]]) -> None:
        """Report with a claim of any age."""
        if self.claims:
            self.do(calls.note(Note(*self._held(pick), progress, lines)))

    @rule(chosen=st.lists(draws.picks, min_size=1, max_size=3), retention=draws.retentions)
    def cancel(self, chosen: list[int], retention: Retention) -> None:
        """Cancel jobs in any state."""
        self.do(calls.cancel(list(map(self._pick, chosen)), retention))

    @rule(chosen=st.lists(draws.picks, min_size=1, max_size=3))
    def retry(self, chosen: list[int]) -> None:
        """Retry jobs in any state."""
        self.do(calls.retry(list(map(self._pick, chosen))))

    @rule(chosen=st.lists(draws.picks, min_size=1, max_size=3))
    def delete(self, chosen: list[int]) -> None:
        """Delete jobs in any state."""
        self.do(calls.delete(list(map(self._pick, chosen))))

    @rule(pick=draws.picks, by=st.none() | st.sampled_from([-10, 0, 7]))
    def reschedule(self, pick: int, by: int | None) -> None:
        """Give a job another time, past or to come."""
        run_at = None if by is None else self.clock.now() + timedelta(seconds=by)
        self.do(calls.reschedule(self._pick(pick), run_at))

    @rule(queue=draws.queues, paused=st.sampled_from([False, False, True]))
    def pause(self, queue: str, *, paused: bool) -> None:
        """Pause or resume a queue, known or not."""
        self.do(calls.pause(queue, paused=paused))

    @rule(request=draws.rescues, retention=draws.retentions)
    def rescue(self, request: RescueRequest, retention: Retention) -> None:
        """Take back claims."""
        self.do(calls.rescue(request, retention))

    @rule()
    def promote(self) -> None:
        """Promote everything that is due: afterwards nothing that is due is called scheduled."""
        self.model.promote()

        self.run(self.store.promote(limit=draws.MANY))

        for job in self.listing():
            assert job.state is not State.SCHEDULED or job.run_at > self.clock.now()

    @rule(retention=draws.retentions)
    def prune(self, retention: Retention) -> None:
        """Prune everything that is past its retention."""
        before = {job.id for job in self.listing()}

        count = self.run(self.store.prune(retention, limit=draws.MANY))

        removed = before - {job.id for job in self.listing()}
        assert len(removed) == count
        assert self.model.prune(removed, retention)

    @rule(write=draws.kv_writes)
    def kv_write(self, write: KvWrite) -> None:
        """Write a value, with or without a condition."""
        self.do(calls.kv_write(write))

    @rule(name=draws.locks, holder=draws.workers, ttl=draws.seconds)
    def lock(self, name: str, holder: str, ttl: timedelta) -> None:
        """Take, renew or fail to take a lock."""
        self.do(calls.lock(name, holder, ttl))

    @rule(name=draws.locks, holder=draws.workers)
    def unlock(self, name: str, holder: str) -> None:
        """Let go of a lock that may be another's or over."""
        self.do(calls.unlock(name, holder))

    @rule(rivals=st.lists(draws.rivals, min_size=2, max_size=4))
    def do_together(self, rivals: list[draws.Rival]) -> None:
        """Make calls at once: some order of their steps must explain all answers, and what is read afterwards.

        The jobs of one call are in line as it named them, but those of another may be between them.
        """
        made: list[Call] = []
        lines: list[list[JobId]] = []
        for rival in rivals:
            before = len(self.ids)
            made.append(self._call(rival))
            lines += self.lines(self.ids[before:])

        answers = self.run(gathered(call.make(self.store) for call in made))

        seen, schedules = self.view(), self.schedules()
        line = [job.id for job in seen.jobs]
        for own in lines:
            assert [job_id for job_id in line if job_id in own] == [job_id for job_id in own if job_id in line]
        fitting = (
            model
            for model in explained(self.model, made, answers)
            if self._looks_like(model, seen) and model.schedules.look(schedules)
        )
        found = next(fitting, None)
        assert found is not None, [(call.name, answer) for call, answer in zip(made, answers, strict=True)]
        self.model = found
        for call, answer in zip(made, answers, strict=True):
            if call.name == "claim":
                self._hold(answer)

    def _looks_like(self, model: Model, seen: View) -> bool:
        """Whether a model that explains calls made at once says what was read; who came first among them is learned."""
        model.put_in_line([job.id for job in seen.jobs], after=self.model.made)
        return self.wanted(model) == seen

    def _call(self, rival: draws.Rival) -> Call:
        match rival:
            case draws.Enqueue(jobs, far):
                return calls.enqueue(self.named(jobs, far=far))
            case draws.Settle(several):
                return calls.settle([self._settlement(each, self.claims) for each in several] if self.claims else [])
            case draws.Cancel(chosen, retention):
                return calls.cancel(list(map(self._pick, chosen)), retention)
            case draws.Retry(chosen):
                return calls.retry(list(map(self._pick, chosen)))
            case draws.Pause(queue, paused):
                return calls.pause(queue, paused=paused)
            case draws.Rescue(request, retention):
                return calls.rescue(request, retention)
            case ClaimRequest():
                return calls.claim(rival)
            case KvWrite():
                return calls.kv_write(rival)
            case draws.Put() | draws.Remove() | draws.Fire():
                return self.schedule_call(rival)
            case _:
                assert_never(rival)

    @rule(worker=draws.workers)
    def crash(self, worker: str) -> None:
        """Let a worker forget what it holds: nobody will settle that, and only rescue ends it."""
        self.claims = [held for held in self.claims if not self._is_held(*held, worker)]

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

    @rule()
    def change_doors(self) -> None:
        """Go on through another door to the same jobs, and close the first one."""
        before, self.store = self.store, self.store.sibling()
        self.run(self.store.open())
        self.run(before.close())

    def stale(self) -> list[calls.Held]:
        """Return the claims whose jobs are with somebody else by now."""
        holders = {job_id: record.token for job_id, record in self.model.jobs.items()}
        return [held for held in self.claims if holders.get(held[0]) not in {None, held[1]}]

    def _settlement(self, ending: draws.Ending, among: Sequence[calls.Held]) -> Settlement:
        job_id, token = among[-1 - ending.pick % len(among)]
        then = self.named(ending.then, far=ending.far, queue=self.model.homes[job_id])
        then = self._with_used_id(then, ending.used)
        settlement = Settlement(job_id, token, ending.verdict, ending.keep, then, ending.kv)
        if not ending.far and not self.model.atomic_across_queues:
            settlement = settlement._replace(kv=None)
        return within_attempts(self.model, settlement)

    def _hold(self, given: Sequence[tuple[Job, Token]] | type[NotAtomicHere]) -> None:
        if isinstance(given, type):
            return
        tokens = {token for _, token in given}
        assert len(tokens) == len(given)
        assert not tokens & self.tokens
        self.tokens |= tokens
        self.claims += [(job.id, token) for job, token in given]

    def _with_used_id(self, batch: list[PreparedJob], used: draws.UsedId | None) -> list[PreparedJob]:
        """Give the last job an id that was used before.

        On a store that is not atomic over queues an id is looked up in its queue, so there it is one of the same queue.
        """
        if not batch or used is None:
            return batch
        *others, last = batch
        job_id = self._pick(used.pick)
        record = self.model.jobs.get(job_id)
        if not self.model.atomic_across_queues and self.model.homes[job_id] != last.queue:
            return batch
        if record is not None and used.repeats:
            old = record.job
            return [*others, last._replace(id=job_id, queue=old.queue, kind=old.kind, tenant=old.tenant)]
        return [*others, last._replace(id=job_id)]

    def _is_held(self, job_id: JobId, token: Token, worker: str) -> bool:
        record = self.model.jobs.get(job_id)
        return record is not None and record.token == token and record.job.worker == worker

    def _pick(self, pick: int) -> JobId:
        return self.ids[-1 - pick % len(self.ids)]

    def _held(self, pick: int) -> calls.Held:
        return self.claims[-1 - pick % len(self.claims)]

    def _request_id(self) -> str:
        self.requests += 1
        return f"request-{self.requests}"


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
