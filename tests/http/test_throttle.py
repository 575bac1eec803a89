import pytest

from windlass.api.roles import Role
from windlass.http import throttle
from windlass.http.auth import Identity
from windlass.http.throttle import FAILURES, LONGEST_WAIT, Rates, WrongTokens, network_of
from windlass.testing import FakeClock

HERE, THERE = "203.0.113.5", "203.0.113.6"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def wrong(clock: FakeClock) -> WrongTokens:
    return WrongTokens(clock=clock)


@pytest.fixture
def rates(clock: FakeClock) -> Rates:
    return Rates(clock=clock)


def who(rate: float | None, name: str = "ci") -> Identity:
    return Identity(name, frozenset({Role.VIEW}), None, rate)


def fail(wrong: WrongTokens, count: int = FAILURES, address: str = HERE) -> list[float]:
    return [wrong.failed(address) for _ in range(count)]


def test_ten_wrong_tokens_within_a_minute_need_not_wait(wrong: WrongTokens) -> None:
    assert fail(wrong) == [0.0] * 10
    assert wrong.failed(HERE) > 0


def test_each_wait_is_twice_the_one_before_up_to_a_quarter_of_an_hour(wrong: WrongTokens, clock: FakeClock) -> None:
    fail(wrong)
    waits: list[float] = []
    for _ in range(12):
        waits.append(wrong.failed(HERE))
        clock.advance(waits[-1])

    assert waits == [2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900]
    assert max(waits) == LONGEST_WAIT


def test_whoever_does_not_wait_is_told_what_is_left(wrong: WrongTokens, clock: FakeClock) -> None:
    fail(wrong)
    for _ in range(3):
        clock.advance(wrong.failed(HERE))
    assert wrong.failed(HERE) == 16

    clock.advance(5)

    assert fail(wrong, 3) == [11, 11, 11]


def test_slow_mistakes_never_wait(wrong: WrongTokens, clock: FakeClock) -> None:
    for _ in range(5):
        assert fail(wrong) == [0.0] * 10
        clock.advance(60)


def test_a_minute_without_a_wrong_token_after_a_wait_is_the_end_of_it(wrong: WrongTokens, clock: FakeClock) -> None:
    fail(wrong)
    clock.advance(wrong.failed(HERE))

    clock.advance(60)

    assert fail(wrong) == [0.0] * 10


def test_one_address_does_not_make_another_wait(wrong: WrongTokens) -> None:
    fail(wrong, 20)

    assert wrong.failed(THERE) == 0.0


def test_an_address_of_a_network_does_not_help_another_of_it(wrong: WrongTokens) -> None:
    waits = [wrong.failed(f"2001:db8::{number:x}") for number in range(1, 12)]

    assert waits[-1] > 0
    assert wrong.failed("2001:db8:0:1::1") == 0.0


def test_addresses_that_are_noted_are_bounded(wrong: WrongTokens, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "MOST_PEERS", 50)

    for number in range(200):
        wrong.failed(f"10.0.0.{number}")

    assert len(wrong) == 50


def test_whoever_goes_on_is_not_forgotten_for_the_sake_of_new_ones(
    wrong: WrongTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throttle, "MOST_PEERS", 50)
    fail(wrong, 11)

    for number in range(200):
        wrong.failed(f"10.0.0.{number}")
        assert wrong.failed(HERE) > 0


@pytest.mark.parametrize(
    "address,network",
    [
        ("10.1.2.3", "10.1.2.3"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unknown", "unknown"),
        ("x" * 1_000, "x" * 100),
        ("", ""),
    ],
)
def test_an_address_stands_for_its_network(address: str, network: str) -> None:
    assert network_of(address) == network


def test_without_a_rate_nobody_waits(rates: Rates) -> None:
    assert [rates.take(who(None)) for _ in range(1_000)] == [0.0] * 1_000
    assert len(rates) == 0


def test_a_seconds_worth_may_come_at_once_and_then_evenly(rates: Rates, clock: FakeClock) -> None:
    assert [rates.take(who(5)) for _ in range(6)] == [0.0] * 5 + [pytest.approx(0.2)]

    clock.advance(0.2)
    assert rates.take(who(5)) == 0.0
    assert rates.take(who(5)) == pytest.approx(0.2)


def test_over_a_long_time_no_more_than_the_rate_is_let_through(rates: Rates, clock: FakeClock) -> None:
    done = 0
    for _ in range(1_000):
        done += rates.take(who(5)) == 0.0
        clock.advance(0.01)

    assert 50 <= done <= 55


def test_a_rate_below_one_lets_one_through_in_its_time(rates: Rates, clock: FakeClock) -> None:
    assert rates.take(who(0.1)) == 0.0
    assert rates.take(who(0.1)) == pytest.approx(10)

    clock.advance(10)

    assert rates.take(who(0.1)) == 0.0


def test_a_long_rest_saves_up_no_more_than_a_second(rates: Rates, clock: FakeClock) -> None:
    rates.take(who(5))

    clock.advance(3600)

    assert [rates.take(who(5)) for _ in range(6)][-1] > 0


def test_one_token_does_not_make_another_wait(rates: Rates) -> None:
    for _ in range(10):
        rates.take(who(5))

    assert rates.take(who(5, "other")) == 0.0


def test_a_rate_that_changed_holds_at_once(rates: Rates, clock: FakeClock) -> None:
    for _ in range(6):
        rates.take(who(5))

    clock.advance(1)

    assert [rates.take(who(2)) for _ in range(3)] == [0.0, 0.0, pytest.approx(0.5)]


def test_rates_that_are_kept_are_bounded(rates: Rates, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "MOST_RATES", 10)

    for number in range(50):
        rates.take(who(5, f"t{number}"))

    assert len(rates) == 10
