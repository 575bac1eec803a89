"""Many callers, few batches, and nobody waits for a timer."""

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from windlass import ClientClosed, OutcomeUnknown, StoreCorrupt, StoreUnavailable
from windlass.core.errors import Fenced, NotAllowed, StoreFull, StoreMoved, StoreReadOnly
from windlass.kit.deadline import EARLY
from windlass.kit.gather import Gather


class Carrier:
    """Answers each number with its double, and holds batches back until told."""

    def __init__(self, *, held: bool = False) -> None:
        self.batches: list[list[int]] = []
        self.open = asyncio.Event()
        self.left = asyncio.Event()
        self.fault: Exception | None = None
        if not held:
            self.open.set()

    async def __call__(self, numbers: list[int]) -> list[int | BaseException]:
        self.batches.append(numbers)
        self.left.set()
        await self.open.wait()
        if self.fault is not None:
            raise self.fault
        return [ValueError(number) if number < 0 else number * 2 for number in numbers]


class Payload:
    """Something large that somebody asks with."""


@pytest.fixture
def nothing_collected() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


async def test_a_single_call_leaves_at_once() -> None:
    carrier = Carrier()

    answer = await Gather(carrier).submit(1)

    assert (answer, carrier.batches) == (2, [[1]])


async def test_a_caller_who_asks_again_at_once_is_answered_again() -> None:
    carrier = Carrier()
    gather = Gather(carrier)

    async with asyncio.timeout(10):
        answers = [await gather.submit(number) for number in range(3)]

    assert (answers, carrier.batches) == ([0, 2, 4], [[0], [1], [2]])


async def test_calls_of_one_turn_of_the_loop_leave_together() -> None:
    carrier = Carrier()
    gather = Gather(carrier)

    answers = await asyncio.gather(*(gather.submit(number) for number in range(5)))

    assert (answers, carrier.batches) == ([0, 2, 4, 6, 8], [[0, 1, 2, 3, 4]])


async def test_what_gathers_while_one_batch_is_on_its_way_leaves_together() -> None:
    carrier = Carrier(held=True)
    gather = Gather(carrier)
    first = gather.submit(1)
    await carrier.left.wait()
    rest = [gather.submit(number) for number in (2, 3, 4)]

    carrier.open.set()

    assert await asyncio.gather(first, *rest) == [2, 4, 6, 8]
    assert carrier.batches == [[1], [2, 3, 4]]


async def test_a_batch_weighs_no_more_than_allowed_unless_it_is_one_call() -> None:
    carrier = Carrier()
    gather = Gather(carrier, most=5, weight=lambda number: number)

    await asyncio.gather(*(gather.submit(number) for number in (2, 3, 1, 9, 4)))

    assert carrier.batches == [[2, 3], [1], [9], [4]]


async def test_no_more_batches_than_the_width_are_on_their_way() -> None:
    carrier = Carrier(held=True)
    gather = Gather(carrier, width=2)
    answers: list[asyncio.Future[int]] = []
    for number in (1, 2, 3):
        carrier.left.clear()
        answers.append(gather.submit(number))
        if number < 3:
            await carrier.left.wait()

    on_their_way = len(carrier.batches)
    carrier.open.set()

    assert (on_their_way, await asyncio.gather(*answers)) == (2, [2, 4, 6])


async def test_an_error_for_one_call_is_only_its_own() -> None:
    gather = Gather(Carrier())

    good, bad = await asyncio.gather(gather.submit(1), gather.submit(-1), return_exceptions=True)

    assert good == 2
    assert isinstance(bad, ValueError)


async def test_an_error_of_the_batch_goes_to_all_its_callers_and_the_next_is_served() -> None:
    carrier = Carrier()
    gather = Gather(carrier)
    carrier.fault = OSError("lost")

    failed = await asyncio.gather(gather.submit(1), gather.submit(2), return_exceptions=True)
    carrier.fault = None

    assert [type(error) for error in failed] == [OSError, OSError]
    assert await gather.submit(3) == 6


async def test_a_wrong_number_of_answers_is_an_error_for_all() -> None:
    async def forgetful(_: list[int]) -> list[int | BaseException]:
        return []

    with pytest.raises(RuntimeError, match="1 calls were given 0 answers"):
        await Gather(forgetful).submit(1)


async def test_a_caller_who_leaves_takes_nobody_along_and_undoes_nothing() -> None:
    carrier = Carrier(held=True)
    gather = Gather(carrier)
    gone, stays = gather.submit(1), gather.submit(2)
    await carrier.left.wait()

    gone.cancel()
    carrier.open.set()

    assert await stays == 4
    assert carrier.batches == [[1, 2]]


async def test_a_call_that_was_taken_back_before_it_left_is_left_out() -> None:
    carrier = Carrier(held=True)
    gather = Gather(carrier)
    first = gather.submit(1)
    await carrier.left.wait()
    gone, stays = gather.submit(2), gather.submit(3)

    gone.cancel()
    carrier.open.set()

    assert [await first, await stays] == [2, 6]
    assert carrier.batches == [[1], [3]]


@pytest.mark.parametrize("fault", [StoreUnavailable("no word", retryable=True), OutcomeUnknown("a-job")])
@pytest.mark.parametrize("patience", [0, EARLY / 2])
async def test_a_call_that_has_waited_too_long_behind_one_in_vain_is_not_sent(
    fault: Exception, patience: float
) -> None:
    carrier = Carrier()
    carrier.fault = fault
    gather = Gather(carrier, most=1, patience=patience)
    first, second = gather.submit(1), gather.submit(2)

    with pytest.raises(type(fault)):
        await first
    with pytest.raises(StoreUnavailable, match="nothing was done") as told:
        await second

    assert told.value.retryable
    assert carrier.batches == [[1]]


@pytest.mark.parametrize(
    "refusal",
    [
        StoreMoved("redis://there"),
        StoreFull("no memory left", retryable=True),
        StoreReadOnly("a replica", retryable=True),
        StoreCorrupt("no database"),
        NotAllowed("no token"),
        Fenced("another owner"),
        StoreUnavailable("a wrong password"),
    ],
)
async def test_behind_one_that_was_refused_a_call_is_told_that_and_not_that_nobody_answered(refusal: Exception) -> None:
    carrier = Carrier()
    carrier.fault = refusal
    gather = Gather(carrier, most=1, patience=0)

    told = await asyncio.gather(*map(gather.submit, (1, 2)), return_exceptions=True)

    assert told == [refusal, refusal]


@pytest.mark.parametrize("most, patience", [(1, 60), (2, 0)])
async def test_behind_one_in_vain_a_call_is_sent_that_has_time_left_or_when_another_of_the_batch_was_answered(
    most: int, patience: float
) -> None:
    async def perform(numbers: list[int]) -> list[int | BaseException]:
        return [StoreUnavailable("no word", retryable=True) if number == 1 else number * 2 for number in numbers]

    gather = Gather(perform, most=most, patience=patience)

    [in_vain, *answered] = await asyncio.gather(*map(gather.submit, (1, 2, 3)), return_exceptions=True)

    assert isinstance(in_vain, StoreUnavailable)
    assert answered == [4, 6]


async def test_one_that_comes_after_those_in_vain_is_sent() -> None:
    carrier = Carrier()
    carrier.fault = StoreUnavailable("no word", retryable=True)
    gather = Gather(carrier, patience=0)
    with pytest.raises(StoreUnavailable):
        await gather.submit(1)
    carrier.fault = None

    assert await gather.submit(2) == 4


async def test_behind_those_that_are_answered_a_call_waits_for_its_turn() -> None:
    carrier = Carrier()
    gather = Gather(carrier, most=1, patience=0)

    assert await asyncio.gather(*map(gather.submit, (1, 2, 3))) == [2, 4, 6]


async def test_a_batch_whose_callers_have_all_gone_does_not_hold_up_the_next() -> None:
    carrier = Carrier()
    gather = Gather(carrier, most=1)
    gone, stays = gather.submit(1), gather.submit(2)

    gone.cancel()

    assert await stays == 4
    assert carrier.batches == [[2]]


async def test_close_finishes_what_was_accepted_and_takes_nothing_more() -> None:
    carrier = Carrier(held=True)
    gather = Gather(carrier)
    first = gather.submit(1)
    await carrier.left.wait()
    second = gather.submit(2)

    closing = asyncio.create_task(gather.close())
    await asyncio.sleep(0)
    late = gather.submit(3)
    carrier.open.set()
    await closing

    assert (first.result(), second.result()) == (2, 4)
    with pytest.raises(ClientClosed):
        await late


async def test_a_call_with_nobody_on_the_way_goes_by_itself_and_others_gather_and_do_not_wait_for_it() -> None:
    carrier = Carrier(held=True)
    gather = Gather(carrier)

    asked = [asyncio.create_task(gather.ask(number)) for number in range(4)]
    for _ in range(3):
        await asyncio.sleep(0)
    on_their_way = list(carrier.batches)
    carrier.open.set()

    assert (on_their_way, await asyncio.gather(*asked)) == ([[0], [1, 2, 3]], [0, 2, 4, 6])


async def test_a_call_that_goes_by_itself_is_told_of_its_error_and_the_next_is_served() -> None:
    carrier = Carrier()
    gather = Gather(carrier)

    with pytest.raises(ValueError, match="-1"):
        await gather.ask(-1)
    carrier.fault = OSError("lost")
    with pytest.raises(OSError, match="lost"):
        await gather.ask(1)
    carrier.fault = None

    assert await gather.ask(2) == 4


@pytest.mark.usefixtures("nothing_collected")
async def test_a_call_that_goes_by_itself_and_fails_holds_on_to_nothing() -> None:
    async def refuse(payloads: list[Payload]) -> list[int | BaseException]:
        return [ValueError(len(payloads))]

    payload = Payload()
    asked_with = weakref.ref(payload)

    try:
        await Gather(refuse).ask(payload)
    except ValueError:
        del payload

    assert asked_with() is None


async def test_beside_the_width_one_call_that_went_by_itself_is_on_its_way() -> None:
    carrier = Carrier(held=True)
    gather = Gather(carrier, width=2)

    asked = [asyncio.create_task(gather.ask(1))]
    for number in (2, 3, 4):
        await carrier.left.wait()
        carrier.left.clear()
        asked.append(asyncio.create_task(gather.ask(number)))
        for _ in range(3):
            await asyncio.sleep(0)
        carrier.left.set()
    on_their_way = list(carrier.batches)
    carrier.open.set()

    assert (on_their_way, await asyncio.gather(*asked)) == ([[1], [2], [3]], [2, 4, 6, 8])


async def test_a_call_that_goes_by_itself_ends_with_its_caller_and_takes_nobody_along() -> None:
    carrier = Carrier(held=True)
    gather = Gather(carrier)
    gone = asyncio.create_task(gather.ask(1))
    await carrier.left.wait()
    stays = gather.submit(2)

    gone.cancel()
    await asyncio.wait({gone})
    carrier.open.set()

    assert (gone.cancelled(), await stays) == (True, 4)
    assert carrier.batches == [[1], [2]]


async def test_close_waits_for_a_call_that_goes_by_itself_too() -> None:
    carrier = Carrier(held=True)
    gather = Gather(carrier)
    first = asyncio.create_task(gather.ask(1))
    await carrier.left.wait()
    second = gather.submit(2)

    closing = [asyncio.create_task(gather.close()) for _ in range(2)]
    await asyncio.sleep(0)
    carrier.open.set()
    await asyncio.gather(*closing)

    assert (await first, second.result()) == (2, 4)
    with pytest.raises(ClientClosed):
        await gather.ask(3)
