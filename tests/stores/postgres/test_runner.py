"""Moves that meet every kind of trouble: done once, repeated where that is right, and ended at their deadline."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from tests.postgres.cluster import as_owner, cluster, dsn_of, schema_of
from tests.postgres.frames import Request
from tests.postgres.proxy import Proxy
from tests.postgres.ready import ready_schema
from tests.stores.postgres.shell import blocking, numbers, options_of, use_statements
from windlass import OutcomeUnknown, StoreFull, StoreUnavailable, UniqueConflict
from windlass.core.failpoint import arm, disarm
from windlass.core.topics import ENDS, Hub, Topic, queue_topic
from windlass.stores.postgres.connections import Connections
from windlass.stores.postgres.options import Options
from windlass.stores.postgres.runner import Runner
from windlass.stores.postgres.work import Changes, Many, Statement, Work
from windlass.system import SystemClock
from windlass.testing import FakeClock

CREATE = "create table if not exists number (number int primary key); truncate number"


class News:
    """What was told to other processes."""

    def __init__(self) -> None:
        self.told: list[set[Topic]] = []

    def tell(self, topics: set[Topic]) -> None:
        self.told.append(topics)


class House:
    """A runner through a proxy, and the parts around it."""

    def __init__(self, proxy: Proxy, url: str, *, timeout: float = 20.0) -> None:
        self.proxy = proxy
        self.url = url
        self.options = Options(proxy.url, schema=schema_of(url), timeout=timeout, connections=3)
        self.connections = Connections(self.options)
        self.hub = Hub()
        self.news = News()
        self.runner = Runner(self.connections, self.hub, self.news, SystemClock(), self.options)

    def stored(self) -> list[int]:
        with blocking(self.url) as connection:
            return [row[0] for row in connection.execute("select number from number order by number")]


@pytest.fixture(autouse=True)
def statements(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    use_statements(monkeypatch)
    yield
    disarm()


@pytest.fixture
def url() -> Iterator[str]:
    with ready_schema() as url:
        with blocking(url) as connection:
            connection.execute(CREATE)
        # who may work with the table that is made here
        yield as_owner(url)


@pytest.fixture
async def proxy(url: str) -> AsyncIterator[Proxy]:
    async with Proxy(dsn_of(url)) as proxy:
        yield proxy


@pytest.fixture
async def house(proxy: Proxy, url: str) -> AsyncIterator[House]:
    house = House(proxy, url)
    # what a call does at first is not counted, nor disturbed, here
    await house.runner.look(numbers)
    yield house
    await house.connections.close()


@pytest.fixture
async def hurried(proxy: Proxy, url: str) -> AsyncIterator[House]:
    """One whose calls have little time."""
    house = House(proxy, url, timeout=1.0)
    await house.runner.look(numbers, timeout=20)
    yield house
    proxy.release()
    await house.connections.close()


def insert(*numbers: int) -> Callable[[Changes], Work[int]]:
    """A move of one or more statements that returns the sum of what it inserted."""

    def move(changes: Changes) -> Work[int]:
        total = 0
        for number in numbers:
            rows = yield Statement("insert", {"number": number})
            total += rows[0][0]
        changes.ready("email")
        return total

    return move


def insert_once(number: int) -> Callable[[Changes], Work[str]]:
    """A move that ends with a receipt."""

    def move(changes: Changes) -> Work[str]:
        yield Statement("insert", {"number": number})
        changes.ready("email")
        # the key of the table must not be what refuses the repetition
        yield Statement("receive", {"request_id": "request", "reply": f"first {number}"})
        return f"first {number}"

    return move


def first_answer() -> Work[str]:
    rows = yield Statement("received", {"request_id": "request"})
    return f"by receipt: {rows[0][0]}"


def inserts(request: Request) -> bool:
    return request.text.startswith("insert into number")


def commits(request: Request) -> bool:
    return request.text == "commit"


def begins(request: Request) -> bool:
    return request.text.startswith("begin")


async def test_a_move_is_one_transaction_and_its_answer_comes_back(house: House) -> None:
    answer = await house.runner.run(insert(1, 2, 3))

    assert (answer, house.stored()) == (6, [1, 2, 3])


async def test_a_move_that_raises_leaves_nothing_and_rings_nobody(house: House) -> None:
    def move(changes: Changes) -> Work[None]:
        yield from insert(1)(changes)
        raise UniqueConflict("key", None)

    with pytest.raises(UniqueConflict):
        await house.runner.run(move)

    assert (house.stored(), house.news.told) == ([], [])


async def test_a_bug_in_a_move_is_said_to_be_no_fault_of_the_database(house: House) -> None:
    def move(_: Changes) -> Work[int]:
        rows = yield Statement("numbers")
        return int(rows[7][0])

    with pytest.raises(StoreUnavailable, match="IndexError") as told:
        await house.runner.run(move)

    assert told.value.__cause__ is not None
    assert told.value.__cause__.__traceback__ is not None


async def test_a_move_without_a_statement_needs_no_connection() -> None:
    options = Options("postgresql://postgres@127.0.0.1:1/app")
    runner = Runner(Connections(options), Hub(), None, SystemClock(), options)

    assert await runner.run(insert()) == 0


async def test_a_single_statement_is_sent_by_itself(house: House) -> None:
    before = house.proxy.requests

    assert await house.runner.run(insert(1), whole=False) == 1

    assert house.proxy.requests - before == 1


async def test_a_move_that_is_not_whole_has_one_statement(house: House) -> None:
    with pytest.raises(StoreUnavailable, match="second statement"):
        await house.runner.run(insert(1, 2), whole=False)


async def test_many_rows_are_part_of_the_move(house: House) -> None:
    def move(_: Changes) -> Work[int]:
        nothing = yield Many("insert", [{"number": 1}, {"number": 2}])
        rows = yield Statement("numbers")
        return len(nothing) + len(rows)

    assert await house.runner.run(move) == 2


async def test_news_is_told_here_and_elsewhere_after_the_commit(house: House) -> None:
    seen: list[list[int]] = []
    house.hub.listen([queue_topic("email")], lambda: seen.append(house.stored()))

    await house.runner.run(insert(1))

    assert seen == [[1]]
    assert house.news.told == [{queue_topic("email")}]


async def test_a_move_without_news_tells_nothing(house: House) -> None:
    await house.runner.look(numbers)

    assert house.news.told == []


async def test_the_time_is_the_databases_own_unless_a_clock_is_moved_by_hand(house: House) -> None:
    times: list[object] = []

    def move(changes: Changes) -> Work[None]:
        times.append(changes.now)
        yield Statement("numbers")

    clock = FakeClock()
    await house.runner.run(move)
    await Runner(house.connections, house.hub, None, clock, house.options).run(move)

    assert times == [None, clock.now()]


async def test_a_look_of_several_statements_sees_one_moment(house: House) -> None:
    def look(_: Changes) -> Work[tuple[int, int, str]]:
        before = yield Statement("numbers")
        with blocking(house.url) as other:
            other.execute("insert into number values (%s)", [len(house.stored()) + 1])
        after = yield Statement("numbers")
        how = yield Statement("isolation")
        return len(before), len(after), how[0][0]

    assert await house.runner.look(look, whole=True) == (0, 0, "repeatable read")
    assert await house.runner.look(look) == (1, 2, "read committed")


@pytest.mark.parametrize("code", ["40001", "40P01"])
async def test_a_move_that_chance_has_rolled_back_is_repeated(house: House, code: str) -> None:
    done = house.proxy.fail(inserts, code)

    assert await house.runner.run(insert(1, 2)) == 3

    assert (done.is_set(), house.stored()) == (True, [1, 2])


async def test_a_move_that_is_always_rolled_back_is_given_up(house: House) -> None:
    for _ in range(50):
        house.proxy.fail(inserts, "40P01")

    with pytest.raises(StoreUnavailable, match="other transactions") as told:
        await house.runner.run(insert(1))

    assert told.value.retryable


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("code", ["25006", "26000"])
async def test_a_connection_that_no_longer_fits_is_replaced(house: House, code: str, whole: object) -> None:
    done = house.proxy.fail(inserts, code)

    assert await house.runner.run(insert(1), whole=bool(whole)) == 1

    assert (done.is_set(), house.stored()) == (True, [1])


@pytest.mark.parametrize(
    "code, error", [("53100", StoreFull), ("57014", StoreUnavailable), ("55P03", StoreUnavailable)]
)
async def test_what_would_end_the_same_is_told_at_once(house: House, code: str, error: type[StoreUnavailable]) -> None:
    house.proxy.fail(inserts, code)
    before = house.proxy.requests

    with pytest.raises(error):
        await house.runner.run(insert(1))

    # begin, the statement, rollback
    assert house.proxy.requests - before <= 3
    assert house.stored() == []


@pytest.mark.parametrize("when", [begins, inserts, commits])
async def test_a_move_whose_connection_was_lost_before_its_commit_arrived_is_repeated(
    house: House, when: Callable[[Request], bool]
) -> None:
    lost = house.proxy.drop_request(when)

    assert await house.runner.run(insert(1, 2)) == 3

    assert (lost.is_set(), house.stored()) == (True, [1, 2])


@pytest.mark.parametrize("when", [begins, inserts])
async def test_a_move_whose_connection_was_lost_before_its_commit_is_not_in_doubt(
    hurried: House, when: Callable[[Request], bool]
) -> None:
    hurried.proxy.drop_reply(when)
    hurried.proxy.refusing = False

    assert await hurried.runner.run(insert(1, 2), doubt="a-job") == 3

    assert hurried.stored() == [1, 2]


async def test_when_the_reply_to_the_commit_is_lost_the_receipt_gives_the_first_answer(house: House) -> None:
    lost = house.proxy.drop_reply(commits)

    # another number each time: the receipt alone refuses the repetition
    moves = iter((insert_once(1), insert_once(2)))

    def move(changes: Changes) -> Work[str]:
        return next(moves)(changes)

    answer = await house.runner.run(move, again=first_answer)

    assert lost.is_set()
    assert answer == "by receipt: first 1"
    assert house.stored() == [1]
    assert house.news.told == [{queue_topic("email")}]


async def test_a_move_that_did_not_arrive_is_done_by_its_repetition(house: House) -> None:
    house.proxy.drop_request(commits)

    answer = await house.runner.run(insert_once(1), again=first_answer)

    assert (answer, house.stored()) == ("first 1", [1])


async def test_the_receipt_of_an_earlier_call_gives_its_answer_too(house: House) -> None:
    await house.runner.run(insert_once(1), again=first_answer)

    assert await house.runner.run(insert_once(2), again=first_answer) == "by receipt: first 1"
    assert house.stored() == [1]


async def test_a_single_statement_whose_reply_was_lost_is_repeated(house: House) -> None:
    def move(_: Changes) -> Work[int]:
        rows = yield Statement("numbers")
        return len(rows)

    lost = house.proxy.drop_reply(1)

    assert await house.runner.run(move, whole=False) == 0
    assert lost.is_set()


@pytest.mark.parametrize("whole", [True, False])
async def test_what_is_not_known_at_the_deadline_is_said_to_be_unknown(hurried: House, whole: object) -> None:
    lost = hurried.proxy.drop_reply(commits if whole else inserts)

    async def no_way_back() -> None:
        await lost.wait()
        hurried.proxy.refusing = True

    async with asyncio.TaskGroup() as group:
        group.create_task(no_way_back())
        with pytest.raises(OutcomeUnknown) as told:
            await hurried.runner.run(insert(1), whole=bool(whole), doubt="a-job")

    assert told.value.job_id == "a-job"
    assert isinstance(told.value.__cause__, StoreUnavailable)
    assert hurried.stored() == [1]


async def test_without_a_job_to_name_a_doubt_is_a_store_that_did_not_answer(hurried: House) -> None:
    lost = hurried.proxy.drop_reply(commits)

    async def no_way_back() -> None:
        await lost.wait()
        hurried.proxy.refusing = True

    async with asyncio.TaskGroup() as group:
        group.create_task(no_way_back())
        with pytest.raises(StoreUnavailable) as told:
            await hurried.runner.run(insert(1))

    assert told.value.retryable
    assert "it may have been done all the same" in str(told.value)


async def test_a_black_hole_is_left_at_the_deadline(hurried: House) -> None:
    hurried.proxy.hold()
    began = time.monotonic()

    with pytest.raises(StoreUnavailable, match="in time") as told:
        await hurried.runner.run(insert(1))

    assert told.value.retryable
    assert 0.9 < time.monotonic() - began < 2.0 + slack()


async def test_a_black_hole_in_the_middle_of_a_single_statement_leaves_it_unknown(hurried: House) -> None:
    hurried.proxy.hold(["answers"])

    with pytest.raises(OutcomeUnknown):
        await hurried.runner.run(insert(1), whole=False, doubt="a-job")


async def test_calls_after_a_black_hole_work_again_at_once(hurried: House) -> None:
    hurried.proxy.hold()
    with pytest.raises(StoreUnavailable):
        await hurried.runner.run(insert(1))
    hurried.proxy.release()

    assert await hurried.runner.run(insert(2), timeout=20) == 2


async def test_who_waits_for_a_row_of_somebody_elses_transaction_is_told_so(hurried: House) -> None:
    with blocking(hurried.url) as other:
        other.execute("insert into number values (1)")
        began = time.monotonic()

        with pytest.raises(StoreUnavailable, match="holds a row or a key that is needed") as told:
            await hurried.runner.run(insert(1), doubt="a-job")
        other.rollback()

    assert told.value.retryable
    assert time.monotonic() - began < 2.0 + slack()


async def test_a_call_may_be_given_more_time_than_others(hurried: House) -> None:
    def move(_: Changes) -> Work[str]:
        yield Statement("sleep", {"seconds": 1.2})
        rows = yield Statement("setting", {"name": "statement_timeout"})
        return str(rows[0][0])

    assert await hurried.runner.run(move, timeout=20) == "18s"


async def test_a_cancelled_call_leaves_nothing_behind(house: House) -> None:
    def move(changes: Changes) -> Work[None]:
        yield from insert(1)(changes)
        yield Statement("sleep", {"seconds": 60.0})

    call = asyncio.create_task(house.runner.run(move))
    await reached(lambda: bool(cluster().run("select 1 from pg_stat_activity where query like 'select pg_sleep%%'")))

    call.cancel()
    await asyncio.wait({call})

    assert call.cancelled()
    assert await house.runner.run(insert(2)) == 2
    assert house.stored() == [2]


async def test_a_cancelled_call_does_not_keep_its_rows_from_others(house: House) -> None:
    def move(changes: Changes) -> Work[None]:
        yield from insert(1)(changes)
        yield Statement("sleep", {"seconds": 60.0})

    call = asyncio.create_task(house.runner.run(move))
    await reached(lambda: bool(cluster().run("select 1 from pg_stat_activity where query like 'select pg_sleep%%'")))
    call.cancel()
    await asyncio.wait({call})
    began = time.monotonic()

    # the same row, which the server keeps until it notices that nobody waits for the other move
    assert await house.runner.run(insert(1)) == 1

    assert time.monotonic() - began < 2.0 + slack()


async def test_a_call_can_be_cancelled_at_every_step(house: House) -> None:
    await house.runner.run(insert(0))
    for step in range(40):
        call = asyncio.create_task(house.runner.run(insert(step * 2 + 1, step * 2 + 2)))
        await turns(step)
        call.cancel()
        await asyncio.wait({call})

    stored = house.stored()

    # both of a move or none, and the next callers read their own answers
    assert all((2 * step + 1 in stored) == (2 * step + 2 in stored) for step in range(40))
    assert await house.runner.look(numbers) == stored


async def test_a_commit_that_was_killed_before_it_was_sent_is_repeated(house: House) -> None:
    kills = iter([True])

    def kill() -> None:
        if next(kills, False):
            cluster().run(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'windlass'"
                " and state = 'idle in transaction'"
            )

    arm("postgres.before_commit", kill)

    assert await house.runner.run(insert(1, 2)) == 3
    assert house.stored() == [1, 2]


async def test_through_a_pooler_a_move_is_done_once_too(url: str, pooled_schema: str) -> None:
    options = options_of(pooled_schema.replace(schema_of(pooled_schema), schema_of(url)))
    connections = Connections(options)
    runner = Runner(connections, Hub(), None, SystemClock(), options)

    answers = [
        await runner.run(insert(1, 2)),
        await runner.run(insert(3), whole=False),
        await runner.look(numbers),
        await runner.look(numbers, whole=True),
        await runner.run(insert_once(4), again=first_answer),
        await runner.run(insert_once(5), again=first_answer),
    ]
    await connections.close()

    assert answers == [3, 3, [1, 2, 3], [1, 2, 3], "first 4", "by receipt: first 4"]


async def test_many_lost_replies_make_nothing_twice(house: House) -> None:
    async def one(number: int) -> int:
        def move(changes: Changes) -> Work[int]:
            yield Statement("insert", {"number": number * 1000 + len(tries)})
            tries.append(number)
            changes.news([ENDS])
            yield Statement("receive", {"request_id": f"request {number}", "reply": str(number)})
            return number

        def again() -> Work[int]:
            rows = yield Statement("received", {"request_id": f"request {number}"})
            return int(rows[0][0])

        tries: list[int] = []
        if number % 3:
            house.proxy.drop_reply(commits)
        return await house.runner.run(move, again=again)

    answers = [await one(number) for number in range(1, 31)]

    assert answers == list(range(1, 31))
    assert [number // 1000 for number in house.stored()] == list(range(1, 31))


async def reached(what: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not what():  # noqa: ASYNC110 - the server signals no event here
            await asyncio.sleep(0.005)


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def slack() -> float:
    """How much later than planned things may be on a busy machine."""
    return 3.0
