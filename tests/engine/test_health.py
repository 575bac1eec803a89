from collections.abc import Sequence

from tests.engine.given import an_attempt
from windlass.client.client import Client
from windlass.engine.attempt import Attempt
from windlass.engine.health import Health, health


def judged(
    *,
    running: bool = True,
    stopping: bool = False,
    slots: int = 4,
    stuck: Sequence[Attempt] = (),
    overdue: Sequence[Attempt] = (),
    not_claimed_for: float | None = None,
    not_settled_for: float | None = None,
) -> Health:
    return health(
        running=running,
        stopping=stopping,
        slots=slots,
        stuck=stuck,
        overdue=overdue,
        not_claimed_for=not_claimed_for,
        not_settled_for=not_settled_for,
    )


def test_a_server_is_ready_unless_there_is_a_reason() -> None:
    assert judged() == Health(ready=True)
    assert judged(running=False).reasons == ("the server does not run",)
    assert judged(stopping=True).reasons == ("the server is stopping",)
    assert judged(not_claimed_for=12.3).reasons == ("the store has not answered a claim for 12 s",)
    assert judged(not_settled_for=12.3).reasons == ("the store has not taken a settlement for 12 s",)


async def test_half_of_the_slots_held_by_stuck_jobs_are_a_reason_and_fewer_are_not(client: Client) -> None:
    stuck = [await an_attempt(client) for _ in range(2)]

    assert judged(slots=5, stuck=stuck).ready
    [reason] = judged(slots=4, stuck=stuck).reasons
    assert reason.startswith("2 of 4 slots")
    assert all(f"{attempt.job.id} (work)" in reason for attempt in stuck)


async def test_a_job_past_its_timeout_and_its_lease_is_a_reason(client: Client) -> None:
    overdue = await an_attempt(client)

    [reason] = judged(overdue=[overdue]).reasons

    assert overdue.job.id in reason


async def test_a_server_that_only_its_end_can_cure_asks_to_be_replaced(client: Client) -> None:
    attempts = [await an_attempt(client) for _ in range(2)]

    assert judged(slots=4, stuck=attempts).replace
    assert judged(overdue=attempts[:1]).replace
    assert not judged(slots=5, stuck=attempts).replace
    assert not judged(not_claimed_for=60, not_settled_for=60).replace
    assert not judged(stopping=True).replace
