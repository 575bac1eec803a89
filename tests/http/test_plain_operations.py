"""Operations that are one call of the store."""

from functools import partial
from typing import Any

from tests.http.given_app import an_app
from windlass.api.carried_call import PlainCall
from windlass.api.moving import Parcel, UnpackTold, parcel_asked
from windlass.core import moving
from windlass.core.commands import UnpackJobs
from windlass.core.moving import Packed
from windlass.http.auth import LOCAL
from windlass.http.call import Call
from windlass.http.routes import plain

PARCEL = moving.Parcel("m", "q", 1, Packed([], []))
UNPACK: PlainCall[UnpackJobs, bool, Parcel, UnpackTold] = PlainCall(
    UnpackJobs,
    Parcel,
    UnpackTold,
    request=lambda command: parcel_asked(command.parcel),
    read=lambda _: UnpackJobs(PARCEL),
    response=lambda _, unpacked: UnpackTold(unpacked=unpacked),
    reply=lambda told: told.unpacked,
)


async def test_a_command_that_the_store_knows_again_is_executed_with_its_request_id() -> None:
    async with an_app() as given:
        shared = given.api.shared
        call: partial[Call[Any]] = partial(
            Call, parcel_asked(PARCEL), LOCAL, shared, given.client.store, _hangs, shared.reading.of("local")
        )

        told = [await plain.execute(UNPACK, call(request_id=name)) for name in ("first", "first", "second")]

    assert [each.unpacked for each in told] == [True, True, False]


async def test_a_request_that_no_store_takes_is_refused_before_it_is_executed() -> None:
    async with an_app() as given:
        for path, body in (
            ("/queues/pause", {"queue": "no name"}),
            ("/kv/get", {"keys": [""]}),
            ("/servers/stranded?dead_after=x", None),
            ("/timings", {"timings": [{"minute": "2026-01-01T00:00:00Z", "queue": " ", "kind": ""}]}),
            ("/move/take_keys", {"keys": [{"name": "k k", "job_id": "x", "until": "time"}]}),
        ):
            reply = await (given.get(path) if body is None else given.post(path, body))
            assert reply.status == 422, path

        assert await given.client.store.audit(limit=10) == []


async def _hangs() -> Any:  # noqa: ANN401 - what Starlette receives
    raise AssertionError
