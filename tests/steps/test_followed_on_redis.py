"""Jobs that others follow, on Redis: a plain success of them is a general end, decided in the script itself."""

from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from tests.steps.recording import ENDS, STOPS_RUNNING
from tests.steps.redis_recorder import FENCE, RedisRecording, recorded_redis
from windlass.core.failpoint import arm, disarm
from windlass.core.job import Claim, Token
from windlass.core.requests import ClaimRequest, Settled
from windlass.core.verdict import ToSucceeded
from windlass.testing import FakeClock
from windlass.testing.conformance.given import MINUTE, a_job, settlement

POINTS = ("redis.before_script", "redis.after_script")
GENERAL_END = [FENCE, STOPS_RUNNING, ENDS]


@pytest.fixture
async def recording() -> AsyncIterator[RedisRecording]:
    async with recorded_redis(FakeClock()) as recording:
        yield recording


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    disarm()


async def claimed(recording: RedisRecording, jobs: int = 1) -> list[Claim]:
    await recording.store.enqueue([a_job("q") for _ in range(jobs)])
    claims = (await recording.store.claim(ClaimRequest(("q",), jobs, MINUTE))).jobs
    assert len(claims) == jobs
    recording.names()
    return claims


async def ended_once(recording: RedisRecording, jobs: int = 1, *, kept: bool = True) -> None:
    [stats] = await recording.store.stats("q")
    assert (stats.running, stats.succeeded, stats.totals.succeeded) == (0, jobs * kept, jobs)


def once(action: Callable[[], None]) -> Callable[[], None]:
    actions = iter([action])

    def act() -> None:
        for first in actions:
            first()

    return act


def lose_the_connection() -> None:
    raise ConnectionResetError


@pytest.mark.parametrize("verdict", [ToSucceeded(), ToSucceeded(b"1", "raw")], ids=["", "result"])
@pytest.mark.parametrize("keep", [True, False])
async def test_a_job_that_others_follow_ends_by_the_general_path(
    recording: RedisRecording, verdict: ToSucceeded, *, keep: bool
) -> None:
    [before, followed, after] = await claimed(recording, 3)
    recording.follow(followed.job.id)

    results = await recording.store.settle(
        [settlement(claim, verdict, keep=keep) for claim in (before, followed, after)]
    )

    assert results == [Settled.DONE] * 3
    assert recording.names() == [STOPS_RUNNING, ENDS, *GENERAL_END, STOPS_RUNNING, ENDS]
    await ended_once(recording, 3, kept=keep)
    [job] = await recording.store.get([followed.job.id])
    assert (job is not None) == keep
    assert job is None or job.result == verdict.result


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("point", POINTS)
async def test_a_job_that_others_follow_ends_once_when_the_connection_is_lost_at_a_failpoint(
    recording: RedisRecording, point: str, *, keep: bool
) -> None:
    [claim] = await claimed(recording)
    recording.follow(claim.job.id)
    arm(point, once(lose_the_connection))

    results = await recording.store.settle([settlement(claim, keep=keep)])

    assert results == [Settled.DONE]
    assert recording.names() == GENERAL_END
    await ended_once(recording, kept=keep)


@pytest.mark.parametrize(
    "point, steps", [("redis.before_script", GENERAL_END), ("redis.after_script", [STOPS_RUNNING, ENDS])]
)
async def test_a_job_that_is_followed_from_a_failpoint_on_ends_once(
    recording: RedisRecording, point: str, steps: list[str]
) -> None:
    [claim] = await claimed(recording)
    arm(point, once(lambda: recording.follow(claim.job.id)))

    results = [await recording.store.settle([settlement(claim)]) for _ in range(2)]

    assert results == [[Settled.DONE], [Settled.REPEATED]]
    assert recording.names() == steps
    await ended_once(recording)


async def test_a_settlement_that_is_late_changes_nothing_of_a_job_that_others_follow(
    recording: RedisRecording,
) -> None:
    [claim] = await claimed(recording)
    recording.follow(claim.job.id)

    results = await recording.store.settle([settlement(claim)._replace(token=Token("stale"))])

    assert results == [Settled.LOST]
    assert recording.names() == []
