from dataclasses import dataclass

import pytest
from pydantic import BaseModel

import windlass
from windlass import Client, DecodeError, Job
from windlass.handlers.results import ResultReader


@dataclass
class Point:
    x: int


class Person(BaseModel):
    name: str


def typed() -> Point:
    return Point(1)


def modelled() -> list[Person]:
    return []


def untyped() -> object:
    pass


del untyped.__annotations__["return"]


def unreadable() -> object:
    pass


unreadable.__annotations__["return"] = "NoSuchName"


def raw() -> bytes:
    return b""


async def a_job_with(client: Client, result: object) -> Job:
    done = await client.enqueue("email")
    claim = await client.claim("email")
    assert claim is not None
    await client.ack(claim, result)
    job = await client.get(done.id)
    assert job is not None
    return job


@pytest.mark.parametrize(
    "function,result,expected",
    [
        (typed, Point(1), Point(1)),
        (typed, None, None),
        (modelled, [Person(name="Ada")], [Person(name="Ada")]),
        (untyped, Point(1), {"x": 1}),
        (unreadable, Point(1), {"x": 1}),
        (raw, b"\xff", b"\xff"),
    ],
)
async def test_a_result_is_read_by_the_return_annotation(function: object, result: object, expected: object) -> None:
    assert callable(function)
    async with windlass.connect("memory://") as client:
        job = await a_job_with(client, result)

        assert ResultReader[object](function).read(job, client.decode_result) == expected


async def test_a_result_that_is_not_what_was_annotated_is_refused_with_its_path() -> None:
    async with windlass.connect("memory://") as client:
        job = await a_job_with(client, {"x": "one"})

        with pytest.raises(DecodeError, match=r"Expected int, got str at \$.x") as caught:
            ResultReader[Point](typed).read(job, client.decode_result)

    assert caught.value.path == "$.x"
