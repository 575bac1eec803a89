from tests.engine.given import an_attempt, attempt_of, claims
from windlass.client.client import Client
from windlass.engine.attempt import Attempt
from windlass.engine.held_claims import HeldClaims


async def test_claims_are_held_until_they_are_removed_and_a_second_removal_is_harmless(client: Client) -> None:
    held = HeldClaims()
    first, second = [attempt_of(client, claim) for claim in await claims(client, 2)]

    held.add([first, second])
    assert held.attempts() == [first, second]
    held.remove([first])
    held.remove([first])

    assert (first in held, second in held, len(held)) == (False, True, 1)


async def test_the_attempts_are_a_copy_that_a_reader_may_walk_while_claims_come_and_go(client: Client) -> None:
    held = HeldClaims()
    held.add([await an_attempt(client), await an_attempt(client)])

    seen: list[Attempt] = []
    for attempt in held.attempts():
        held.remove([attempt])
        seen.append(attempt)

    assert len(seen) == 2
    assert held.attempts() == []


async def test_a_job_that_is_claimed_again_is_another_claim(client: Client) -> None:
    held = HeldClaims()
    lost = await an_attempt(client)
    held.add([lost])
    await client.rescue(force=True)
    again = await an_attempt(client, enqueue=False)
    held.add([again])

    held.remove([lost])

    assert held.attempts() == [again]
