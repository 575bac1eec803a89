"""What the state machine draws: jobs, verdicts, requests, and calls to be made together.

Names, keys and times are few, so that what is drawn meets what was drawn before.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from hypothesis import strategies as st

from windlass.core.ids import JobId
from windlass.core.job import NO_HEADERS, Failure, PreparedJob
from windlass.core.retention import Keep, Retention
from windlass.core.store import ClaimRequest, KvAny, KvWrite, RescueRequest
from windlass.core.unique import Unique, hold
from windlass.core.verdict import ToCancelled, ToDead, ToReleased, ToRetry, ToSnoozed, ToSucceeded, Verdict

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


rescues = st.builds(
    RescueRequest,
    queues=st.sampled_from([None, None, ["a"], ["a", "b"], []]),
    workers=st.sampled_from([None, None, ["w1"], ["w2", "w3"]]),
    force=st.booleans(),
    to=st.sampled_from(["retry", "retry", "dead"]),
    limit=st.just(MANY),
)
locks = st.sampled_from(["l1", "l2"])
kv_writes = st.builds(KvWrite, keys, values, st.just(KvAny.ANY) | values)


class Enqueue(NamedTuple):
    """Enqueue beside other calls."""

    jobs: Sequence[PreparedJob]


class Settle(NamedTuple):
    """Settle beside other calls."""

    endings: Sequence[Ending]


class Cancel(NamedTuple):
    """Cancel beside other calls."""

    chosen: Sequence[int]
    retention: Retention


class Retry(NamedTuple):
    """Retry beside other calls."""

    chosen: Sequence[int]


class Pause(NamedTuple):
    """Pause or resume beside other calls."""

    queue: str
    paused: bool


class Rescue(NamedTuple):
    """Rescue beside other calls."""

    request: RescueRequest
    retention: Retention


Rival: TypeAlias = Enqueue | ClaimRequest | Settle | Cancel | Retry | Pause | Rescue | KvWrite
some = st.lists(picks, min_size=1, max_size=2)
rivals: st.SearchStrategy[Rival] = st.one_of(
    st.builds(Enqueue, st.lists(prepared_jobs(), min_size=1, max_size=2)),
    requests,
    st.builds(Settle, st.lists(endings, min_size=1, max_size=2)),
    st.builds(Cancel, some, retentions),
    st.builds(Retry, some),
    st.builds(Pause, queues, st.booleans()),
    st.builds(Rescue, rescues, retentions),
    kv_writes,
)
