"""Passwords, on a server that asks for them: one that fits lets in, any other is told of at once and never shown."""

import asyncio
import logging
import traceback
from secrets import token_hex
from typing import Final

import pytest

import windlass
from tests.cli.conftest import Run, run
from tests.postgres.guarded import GuardedCluster
from windlass import App, Client, Server, StoreUnavailable

__all__ = ["run"]

pytestmark = pytest.mark.usefixtures("nothing_from_outside")

SECRET: Final = "hunter2-canary"  # noqa: S105 - it is to be looked for
PATIENCE: Final = 30.0
REFUSED: Final = "password authentication failed"
UNKNOWN_HOST: Final = "localhost:1"


def new_user() -> str:
    return f"user_{token_hex(4)}"


def shown(error: BaseException) -> str:
    """Return all that somebody may see of an error."""
    return f"{error!r} {error} {''.join(traceback.format_exception(error))}"


def refusals(server: GuardedCluster, user: str) -> int:
    """Return how many connections of a user the server has refused."""
    return server.log.read_text().count(f'{REFUSED} for user "{user}"')


async def works(client: Client, other: Client | None = None) -> bool:
    """Live a job; `other` enqueues it, if there is one, and then this one has to hear of it."""
    async with asyncio.timeout(PATIENCE):
        waiting = asyncio.create_task(client.claim("q", wait=PATIENCE))
        await (other or client).enqueue("q", b"")
        claim = await waiting
        assert claim is not None
        await client.ack(claim)
        return (await client.stats("q")).succeeded > 0


@pytest.mark.parametrize(
    "user, password",
    [
        ("ann", "simple"),
        ("odd", "p@s:s/w?o#r%25d\"'\\ +&=;$"),
        ("åsa@home:1/2", " spaces at both ends "),
        # the standard says that these are the same as others, which the server keeps in their place
        ("far", "\u212bngstr\u00f6m \ufb01\u00ad\u2168"),
    ],
)
async def test_a_user_and_a_password_of_any_characters_are_let_in(
    guarded: GuardedCluster, user: str, password: str
) -> None:
    async with windlass.connect(guarded.new_url(user, password)) as client:
        assert await works(client)


@pytest.mark.parametrize("before, behind", [("", ""), (f"{UNKNOWN_HOST},", ""), ("", f",{UNKNOWN_HOST}")])
async def test_a_wrong_password_is_told_of_at_once_and_not_shown(
    guarded: GuardedCluster, caplog: pytest.LogCaptureFixture, before: str, behind: str
) -> None:
    user = new_user()
    url = guarded.new_url(user, "right").replace(":right@", f":{SECRET}@")
    url = url.replace("@localhost", f"@{before}localhost").replace("/postgres?", f"{behind}/postgres?timeout=60&")

    with caplog.at_level(logging.DEBUG), pytest.raises(StoreUnavailable, match=REFUSED) as refused:
        await asyncio.wait_for(windlass.connect(url).open(), PATIENCE)

    assert not refused.value.retryable
    assert "check user and password" in str(refused.value)
    assert SECRET not in shown(refused.value) + caplog.text
    assert refusals(guarded, user) == 1


async def test_a_password_that_is_missing_is_told_of_as_a_wrong_one(guarded: GuardedCluster) -> None:
    url = guarded.new_url(new_user(), SECRET).replace(f":{SECRET}@", "@")

    with pytest.raises(StoreUnavailable, match=f"{REFUSED}.*PGPASSWORD, a passfile"):
        await windlass.connect(url).open()


@pytest.mark.parametrize("word", [SECRET, "right"])
@pytest.mark.parametrize(
    "command", [["migrate"], ["migrate", "--status"], ["doctor"], ["schedules", "list"], ["config"]]
)
def test_no_command_shows_a_password(run: Run, guarded: GuardedCluster, command: list[str], word: str) -> None:
    url = guarded.new_url(new_user(), "right-canary").replace(":right-canary@", f":{word}-canary@")
    if word == "right":
        assert run("migrate", "--url", url).code == 0

    done = run(*command, "--url", url)

    assert "canary" not in done.out + done.err
    if command != ["config"]:
        assert (REFUSED in done.out + done.err) == (word != "right")
        assert (done.code == 0) == (word == "right"), done


async def test_a_password_that_is_changed_is_met_by_new_connections_only(guarded: GuardedCluster) -> None:
    user = new_user()
    url = guarded.new_url(user, "first")
    async with windlass.connect(url, poll_interval=600) as client, windlass.connect(url) as other:
        assert await works(client, other)

        guarded.set_password(user, "second")
        assert await works(client, other)

        guarded.end_sessions(user)
        with pytest.raises(StoreUnavailable, match=REFUSED) as refused:
            await asyncio.wait_for(client.stats(), PATIENCE)
        assert not refused.value.retryable

        guarded.set_password(user, "first")
        assert await works(client, other)


async def test_a_server_goes_on_when_its_password_is_right_again(
    guarded: GuardedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    user = new_user()
    app = App(guarded.new_url(user, SECRET))
    done = asyncio.Event()

    @app.job
    async def work() -> None:
        done.set()

    async with asyncio.timeout(4 * PATIENCE), app, Server(app):
        with caplog.at_level(logging.WARNING, "windlass"):
            guarded.set_password(user, "another")
            guarded.end_sessions(user)
            while REFUSED not in caplog.text:  # noqa: ASYNC110 - a log signals no event
                await asyncio.sleep(0.02)
        guarded.set_password(user, SECRET)

        handle = await work.enqueue()

        await done.wait()
        await handle.wait(PATIENCE)
    assert SECRET not in caplog.text


async def test_a_password_of_the_environment_is_taken(guarded: GuardedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    url = guarded.new_url(new_user(), SECRET).replace(f":{SECRET}@", "@")
    monkeypatch.setenv("PGPASSWORD", SECRET)

    async with windlass.connect(url) as client:
        assert await works(client)
