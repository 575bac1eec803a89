import asyncio
import errno
import logging

import pytest

from windlass.kit import reaching
from windlass.kit.reaching import is_refused, told_when_slow

SOON = 0.01


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaching, "TOLD_AFTER", SOON)


async def test_whoever_waits_hears_once_what_is_wrong_and_for_how_long_it_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked = asyncio.Event()

    def met() -> str:
        asked.set()
        return "nothing listens there: start it"

    with told_when_slow("the server at db", 10 + SOON, met):
        await asked.wait()
        await asyncio.sleep(3 * SOON)

    [told] = caplog.records
    assert (told.levelno, told.name) == (logging.WARNING, "windlass")
    assert told.getMessage() == "nothing listens there: start it; it is tried for 10 s more"


async def test_where_nothing_was_met_yet_it_says_that_there_is_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    asked = asyncio.Event()

    with told_when_slow("the server at db", 2.5 + SOON, asked.set):
        await asked.wait()
        await asyncio.sleep(0)

    assert caplog.messages == ["the server at db has not answered yet; it is tried for 2.5 s more"]


async def test_what_is_reached_in_time_is_not_spoken_of(caplog: pytest.LogCaptureFixture) -> None:
    with told_when_slow("the server at db", 10, lambda: "no"):
        pass

    await asyncio.sleep(3 * SOON)
    assert caplog.messages == []


async def test_what_ends_by_an_error_in_time_is_not_spoken_of(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(OSError, match="no"), told_when_slow("the server at db", 10, lambda: "no"):
        raise OSError("no")

    await asyncio.sleep(3 * SOON)
    assert caplog.messages == []


@pytest.mark.parametrize(
    "error, refused",
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed"), True),
        (OSError("Multiple exceptions: [Errno 111] Connect call failed ('::1', 1), [Errno 111] Connect call"), True),
        (ConnectionResetError("gone"), False),
        (ValueError("[Errno 111]"), False),
    ],
)
def test_that_nothing_listens_is_known_by_the_error(error: Exception, refused: bool) -> None:  # noqa: FBT001
    assert is_refused(error) is refused
