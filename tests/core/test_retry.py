import random
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.errors import InvalidValue
from windlass.core.retry import Exponential, Fixed, Jitter, Linear, NoRetry, retry_delay

ZERO = timedelta(0)
jitters = st.sampled_from(["proportional", "full", "none"])
draws = st.floats(0, 1)


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


@pytest.mark.parametrize("attempt, delay", [(1, 1), (2, 2), (3, 4), (4, 8), (20, 60)])
def test_c61_the_delay_doubles_up_to_the_cap(attempt: int, delay: int) -> None:
    policy = Exponential(base=1, cap=60, jitter="none")

    assert policy.delay(attempt, None, 0.5) == seconds(delay)


@given(attempt=st.integers(1, 10**9), jitter=jitters, draw=draws)
def test_c61_a_base_of_zero_retries_at_once(attempt: int, jitter: Jitter, draw: float) -> None:
    assert Exponential(base=0, jitter=jitter).delay(attempt, None, draw) == ZERO


@pytest.mark.parametrize("attempt, most", [(1, 5), (4, 40), (30, 900)])
def test_c89_full_jitter_stays_under_the_plain_delay_and_the_cap(attempt: int, most: int) -> None:
    policy = Exponential(base=5, cap=900, jitter="full")
    rng = random.Random(89)

    delays = [policy.delay(attempt, None, rng.random()) for _ in range(50)]

    assert all(delay is not None and ZERO <= delay <= seconds(most) for delay in delays)


def test_jitter_makes_delays_differ() -> None:
    for jitter in ("full", "proportional"):
        policy = Exponential(base=5, cap=900, jitter=jitter)

        assert policy.delay(1, None, 0.1) != policy.delay(1, None, 0.9)


@given(attempt=st.integers(1, 10**9), jitter=jitters, draw=draws, factor=st.floats(1, 1e9))
def test_the_cap_holds_after_the_jitter(attempt: int, jitter: Jitter, draw: float, factor: float) -> None:
    delay = Exponential(base=2, factor=factor, cap=10, jitter=jitter).delay(attempt, None, draw)

    assert delay is not None
    assert ZERO <= delay <= seconds(10)


@given(attempt=st.integers(1, 10**9), draw=draws)
def test_the_longest_allowed_delay_can_be_reached_and_not_passed(attempt: int, draw: float) -> None:
    century = timedelta(days=36_500)

    delay = Exponential(base=century, cap=century).delay(attempt, None, draw)

    assert delay is not None
    assert delay <= century


@given(draw=draws)
def test_proportional_jitter_stays_within_a_quarter(draw: float) -> None:
    delay = Exponential(base=100, cap=1000).delay(1, None, draw)

    assert delay is not None
    assert seconds(75) <= delay <= seconds(125)


@pytest.mark.parametrize("attempt, delay", [(1, 1), (2, 3), (3, 5), (100, 30), (10**12, 30)])
def test_a_linear_delay_grows_by_its_step_up_to_the_cap(attempt: int, delay: int) -> None:
    assert Linear(base=1, step=2, cap=30, jitter="none").delay(attempt, None, 0.5) == seconds(delay)


@pytest.mark.parametrize("attempt", [1, 7, 10**12])
def test_a_fixed_delay_is_always_the_same(attempt: int) -> None:
    assert Fixed(5).delay(attempt, None, 0.9) == seconds(5)


def test_no_retry_gives_up() -> None:
    assert NoRetry().delay(1, None, 0) is None


@pytest.mark.parametrize("policy", [Exponential, Linear, Fixed])
def test_only_errors_of_retry_on_are_retried(policy: type[Exponential | Linear | Fixed]) -> None:
    rule = policy(retry_on=(OSError,))

    assert rule.delay(1, TimeoutError(), 0.5) is not None
    assert rule.delay(1, ValueError(), 0.5) is None


@pytest.mark.parametrize("policy", [Exponential, Linear, Fixed])
def test_give_up_on_wins_over_retry_on(policy: type[Exponential | Linear | Fixed]) -> None:
    rule = policy(retry_on=(OSError,), give_up_on=(TimeoutError,))

    assert rule.delay(1, TimeoutError(), 0.5) is None
    assert rule.delay(1, FileNotFoundError(), 0.5) is not None


@pytest.mark.parametrize("answer, delay", [(2, seconds(2)), (0.5, seconds(0.5)), (ZERO, ZERO), (None, None)])
def test_a_function_of_attempt_and_exception_is_a_policy(
    answer: float | timedelta | None, delay: timedelta | None
) -> None:
    asked: list[tuple[int, BaseException | None]] = []
    error = ValueError()

    def rule(attempt: int, error: BaseException | None) -> float | timedelta | None:
        asked.append((attempt, error))
        return answer

    assert retry_delay(rule, 3, error, 0.5) == delay
    assert asked == [(3, error)]


@pytest.mark.parametrize("answer", [-1, float("nan"), "soon"])
def test_a_function_that_answers_nonsense_is_refused(answer: object) -> None:
    nonsense: Any = answer

    with pytest.raises(InvalidValue, match="the delay of the retry function"):
        retry_delay(lambda _attempt, _error: nonsense, 1, None, 0.5)


@pytest.mark.parametrize(
    "given",
    [
        {"base": -1},
        {"cap": float("inf")},
        {"factor": 0.5},
        {"factor": float("nan")},
        {"jitter": "some"},
    ],
)
def test_a_policy_that_cannot_mean_anything_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        Exponential(**given)


@pytest.mark.parametrize("attempt", [-(2**63), -1, 0, 2**63 - 1])
@pytest.mark.parametrize("policy", [Exponential(), Linear(), Fixed()])
def test_an_attempt_that_is_damaged_has_a_delay_too(policy: Exponential | Linear | Fixed, attempt: int) -> None:
    delay = policy.delay(attempt, None, 0.5)

    assert delay is not None
    assert timedelta(0) <= delay
