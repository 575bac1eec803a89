import asyncio

import pytest

from windlass.http.under_way import UnderWay


class Work:
    def __init__(self) -> None:
        self.begun = 0
        self.ended: list[str] = []
        self.go = asyncio.Event()

    async def __call__(self) -> int:
        self.begun += 1
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        self.ended.append("done")
        return self.begun


async def _begun(*tasks: "asyncio.Task[int]") -> None:
    for _ in range(5 + len(tasks)):
        await asyncio.sleep(0)


async def test_those_who_ask_at_the_same_time_get_one_answer() -> None:
    under_way, work = UnderWay(), Work()
    tasks = [asyncio.create_task(under_way.join("r", work)) for _ in range(3)]
    await _begun(*tasks)
    work.go.set()

    assert await asyncio.gather(*tasks) == [1, 1, 1]
    assert (work.begun, len(under_way)) == (1, 0)
    assert await under_way.join("r", work) == 2


async def test_it_goes_on_while_one_of_them_waits() -> None:
    under_way, work = UnderWay(), Work()
    first, second = (asyncio.create_task(under_way.join("r", work)) for _ in range(2))
    await _begun(first, second)
    first.cancel()
    await asyncio.wait((first,))
    work.go.set()

    assert (await second, work.ended) == (1, ["done"])


async def test_it_ends_with_the_last_of_them() -> None:
    under_way, work = UnderWay(), Work()
    tasks = [asyncio.create_task(under_way.join("r", work)) for _ in range(2)]
    await _begun(*tasks)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)

    assert (work.ended, len(under_way)) == (["cancelled"], 0)


async def test_all_of_them_get_its_error() -> None:
    async def fail() -> int:
        await asyncio.sleep(0)
        raise ValueError

    under_way = UnderWay()
    tasks = [asyncio.create_task(under_way.join("r", fail)) for _ in range(2)]

    for task in tasks:
        with pytest.raises(ValueError):  # noqa: PT011 - it has no words
            await task
