"""Calls that meet every kind of trouble: repeated where that is right, in doubt only when they are, ended in time."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable
from typing import Final, TypeVar

import pytest

from tests.stores.http.running import only, runner_of, sockets, turns
from tests.stores.http.scripted import Act, Line, Request, Scripted, hangs, refuses, reply, says, vanishes
from windlass.api.operations import ABOUT, ENQUEUE, GLANCE
from windlass.core.errors import ClaimLost, OutcomeUnknown, StoreUnavailable
from windlass.stores.http.runner import NOBODY, Runner

T = TypeVar("T")

SHORT: Final = 0.5
REPEATED: Final = "windlass-serving"


@pytest.fixture
async def runner(server: Scripted) -> AsyncIterator[Runner]:
    async with runner_of(server, timeout="20", connections="3") as runner:
        yield runner


@pytest.fixture
async def hurried(server: Scripted) -> AsyncIterator[Runner]:
    """One whose calls have little time."""
    async with runner_of(server, timeout=str(SHORT)) as runner:
        yield runner


async def written(runner: Runner, body: bytes = b"job", *, doubt: str | None = None) -> bytes:
    return await runner.call(ENQUEUE, body, request_id="r1", writes=True, doubt=doubt)


async def timed(call: Awaitable[T]) -> float:
    """Return after how many seconds a call has failed."""
    began = time.monotonic()
    with pytest.raises((StoreUnavailable, OutcomeUnknown)):
        await call
    return time.monotonic() - began


def serving(server: Scripted) -> list[str | None]:
    """Return which process each request says that it was first sent to."""
    return [request.headers.get(REPEATED) for request in server.requests]


async def test_a_call_is_one_request_that_says_all_that_is_needed(server: Scripted) -> None:
    async with runner_of(server, path="/team", token="abc") as runner:  # noqa: S106 - one of a test
        assert await runner.call(ENQUEUE, b"{}", request_id="r1", writes=True) == b"{}"
        assert await runner.call(ABOUT, query="a=b") == b"/team/api/v1?a=b"

    first, second = server.requests
    assert (first.method, first.target, first.body) == ("POST", "/team/api/v1/jobs", b"{}")
    usual = {"host": f"127.0.0.1:{server.port}", "user-agent": "windlass", "authorization": "Bearer abc"}
    body = {"content-type": "application/json", "content-length": "2"}
    assert first.headers == usual | body | {"windlass-request": "r1"}
    assert (second.method, second.headers) == ("GET", usual)
    assert server.opened == 1


async def test_each_change_has_a_name_of_its_own(server: Scripted, runner: Runner) -> None:
    for _ in range(2):
        await runner.call(ENQUEUE, b"{}", writes=True)
    await runner.call(GLANCE, b"{}")

    names = [request.headers.get("windlass-request") for request in server.requests]
    assert len({*names}) == 3
    assert names[2] is None


async def test_a_call_whose_reply_was_lost_is_made_again_under_its_name(server: Scripted, runner: Runner) -> None:
    await runner.call(GLANCE, b"{}")
    server.acts.extend([vanishes(), says(reply(b"half of it")[:-3], stays=False)])

    assert await written(runner) == b"job"

    _, *tries = server.requests
    assert [each.headers["windlass-request"] for each in tries] == ["r1"] * 3
    assert [each.headers.get(REPEATED) for each in tries] == [None, "process-1", "process-1"]


async def test_a_repeat_names_the_process_that_had_it_first(server: Scripted, runner: Runner) -> None:
    await runner.call(GLANCE, b"{}")
    server.serving = "process-2"
    server.acts.extend([vanishes(), says(reply(status=503, serving="process-2")), vanishes()])

    assert await written(runner) == b"job"

    assert serving(server) == [None, None, "process-1", "process-1", "process-1"]


async def test_a_repeat_of_the_first_call_of_all_says_that_nobody_knows_who_had_it(
    server: Scripted, runner: Runner
) -> None:
    server.acts.append(vanishes())

    assert await written(runner) == b"job"

    assert serving(server) == [None, NOBODY]


async def test_the_process_is_known_on_new_connections_too(server: Scripted, runner: Runner) -> None:
    await runner.call(GLANCE, b"{}")
    server.acts.extend([hangs(server), vanishes()])
    other = asyncio.create_task(runner.call(GLANCE, b"{}"))
    await server.until_asked(2)

    assert await written(runner) == b"job"

    assert serving(server) == [None, None, None, "process-1"]
    assert [request.connection for request in server.requests] == [1, 1, 2, 3]
    other.cancel()


async def test_a_look_is_repeated_without_a_name(server: Scripted, runner: Runner) -> None:
    server.acts.append(vanishes())

    assert await runner.call(GLANCE, b"{}") == b"{}"

    assert [*server.requests[1].headers] == ["host", "user-agent", "content-type", "content-length"]


@pytest.mark.parametrize("status", [408, 429, 503])
async def test_who_is_not_ready_is_asked_again_and_nothing_is_in_doubt(
    server: Scripted, runner: Runner, status: int
) -> None:
    server.acts.extend([refuses(status), refuses(status, b"busy")])

    assert await written(runner) == b"job"

    assert serving(server) == [None] * 3
    assert server.opened == 1


@pytest.mark.parametrize("status", [502, 503, 504])
async def test_a_proxy_that_got_no_answer_leaves_a_doubt(server: Scripted, runner: Runner, status: int) -> None:
    server.acts.append(refuses(status, serving=None))

    assert await written(runner) == b"job"

    assert serving(server) == [None, NOBODY]
    # the proxy itself is well
    assert server.opened == 1


async def test_a_server_is_left_alone_for_as_long_as_it_wants(server: Scripted, runner: Runner) -> None:
    server.acts.append(refuses(503, Retry_After="0.3"))
    began = time.monotonic()

    await runner.call(GLANCE, b"{}")

    assert time.monotonic() - began >= 0.3


async def test_a_server_that_wants_to_be_left_alone_for_too_long_is(server: Scripted, hurried: Runner) -> None:
    server.always = refuses(429, Retry_After="3600")

    assert await timed(hurried.call(GLANCE, b"{}")) < SHORT + 3

    assert len(server.requests) == 1


async def test_why_a_call_was_refused_to_the_end_is_told_and_nothing_is_in_doubt(
    server: Scripted, hurried: Runner
) -> None:
    server.always = refuses(503, b"busy")
    began = time.monotonic()

    with pytest.raises(StoreUnavailable, match="the store is busy") as told:
        await written(hurried, doubt="job 1")

    assert told.value.retryable
    assert SHORT / 2 < time.monotonic() - began < SHORT + 3
    assert len(server.requests) > 2


@pytest.mark.parametrize(
    "status, said", [(401, "wants a token"), (403, "role"), (301, "redirection"), (404, "release")]
)
async def test_what_would_end_the_same_is_told_at_once(
    server: Scripted, runner: Runner, status: int, said: str
) -> None:
    server.acts.append(refuses(status))

    with pytest.raises(StoreUnavailable, match=said) as told:
        await written(runner, doubt="job 1")

    assert not told.value.retryable
    assert len(server.requests) == 1


async def test_the_error_that_is_told_is_raised(server: Scripted, runner: Runner) -> None:
    server.acts.extend([vanishes(), refuses(409, b"claim_lost")])

    with pytest.raises(ClaimLost):
        await written(runner, doubt="job 1")


def leaves(server: Scripted) -> Act:
    """Do it, and be gone for good before the reply."""

    async def act(_: Request, line: Line) -> bool:
        asyncio.get_running_loop().call_soon(line.writer.transport.abort)
        server.stop_listening()
        return False

    return act


async def test_what_is_not_known_at_the_deadline_is_said_to_be_unknown(server: Scripted, hurried: Runner) -> None:
    server.acts.append(leaves(server))

    with pytest.raises(OutcomeUnknown) as told:
        await written(hurried, doubt="job 1")

    assert told.value.job_id == "job 1"
    assert isinstance(told.value.__cause__, StoreUnavailable)


async def test_without_a_job_to_name_a_doubt_is_a_store_that_did_not_answer(server: Scripted, hurried: Runner) -> None:
    server.acts.append(leaves(server))

    with pytest.raises(StoreUnavailable, match="nothing listens") as told:
        await written(hurried)

    assert told.value.retryable


async def test_a_call_that_was_never_sent_is_not_in_doubt(server: Scripted, hurried: Runner) -> None:
    await server.leave()

    with pytest.raises(StoreUnavailable, match="nothing listens") as told:
        await written(hurried, doubt="job 1")

    assert told.value.retryable


async def test_a_doubt_is_not_forgotten_when_the_repetition_is_refused(server: Scripted, hurried: Runner) -> None:
    server.acts.append(vanishes())
    server.always = refuses(503, b"busy")

    with pytest.raises(OutcomeUnknown):
        await written(hurried, doubt="job 1")


async def test_a_process_that_cannot_know_says_so_and_is_not_asked_again(server: Scripted, runner: Runner) -> None:
    server.always = refuses(409, b"outcome_unknown")

    with pytest.raises(OutcomeUnknown) as told:
        await written(runner, doubt="job 7")
    with pytest.raises(StoreUnavailable, match="not known whether the call was done") as without:
        await written(runner)

    assert told.value.job_id == "job 7"
    assert not without.value.retryable
    assert len(server.requests) == 2


async def test_a_failure_of_the_server_in_the_middle_of_a_change_is_a_doubt(server: Scripted, runner: Runner) -> None:
    server.always = refuses(500)

    with pytest.raises(OutcomeUnknown):
        await written(runner, doubt="job 1")
    with pytest.raises(StoreUnavailable, match="its log says why") as told:
        await written(runner)

    assert told.value.retryable
    assert len(server.requests) == 2


async def test_calls_after_a_black_hole_work_again_at_once(server: Scripted, hurried: Runner) -> None:
    server.acts.append(hangs(server, reply(b"half of it")[:-3]))
    took = await timed(written(hurried, doubt="job 1"))

    began = time.monotonic()
    assert await written(hurried, b"next") == b"next"

    assert SHORT / 2 < took < SHORT + 3
    assert time.monotonic() - began < SHORT


@pytest.mark.parametrize("garbage", [b"SSH-2.0-OpenSSH_9.2\r\n", b"\x15\x03\x01\x00\x02\x02\x16"])
async def test_a_server_of_another_kind_is_told_of_at_once(server: Scripted, runner: Runner, garbage: bytes) -> None:
    server.always = hangs(server, garbage)

    with pytest.raises(StoreUnavailable, match="is not windlass serve") as told:
        await written(runner, doubt="job 1")

    assert not told.value.retryable
    assert len(server.requests) == 1


async def test_a_website_is_not_taken_for_a_store(server: Scripted, runner: Runner) -> None:
    server.always = refuses(200, b"<html>", serving=None)

    with pytest.raises(StoreUnavailable, match=r"is not windlass serve \(status 200\)"):
        await runner.call(GLANCE, b"{}")


async def test_connections_that_the_server_has_ended_while_idle_are_noticed(server: Scripted, runner: Runner) -> None:
    before_all = sockets()
    await asyncio.gather(*(runner.call(GLANCE, b"%d" % number) for number in range(3)))
    for line in [*server.lines.values()]:
        line.writer.close()
    await only(before_all, server)
    before = len(server.requests)

    assert await written(runner) == b"job"

    assert len(server.requests) - before == 1
    assert serving(server)[-1] is None


async def test_a_server_that_comes_back_is_found(server: Scripted, runner: Runner) -> None:
    await written(runner)
    await server.leave()
    call = asyncio.create_task(written(runner, b"late"))
    await turns(50)
    await server.listen()

    assert await call == b"late"


async def test_fifty_callers_share_two_connections(server: Scripted) -> None:
    async with runner_of(server, connections="2") as runner:
        answers = await asyncio.gather(*(runner.call(GLANCE, b"%d" % number) for number in range(50)))

    assert answers == [b"%d" % number for number in range(50)]
    assert server.opened == 2


async def test_who_waits_until_the_deadline_is_told_which_option_helps(server: Scripted) -> None:
    server.always = hangs(server)
    async with runner_of(server, connections="1", timeout=str(SHORT)) as narrow:
        ends = await asyncio.gather(*(narrow.call(GLANCE, b"{}") for _ in range(3)), return_exceptions=True)

    assert all(isinstance(end, StoreUnavailable) and end.retryable for end in ends)
    assert any("?connections=" in str(end) for end in ends)
