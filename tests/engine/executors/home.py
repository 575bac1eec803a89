"""An app and its handlers, as child processes import them."""

import asyncio
import ctypes
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

import windlass
from windlass.client.client import Client
from windlass.core.errors import DecodeError
from windlass.core.job import Job, NewJob
from windlass.core.retry import Fixed, RetryRule
from windlass.core.settings import UNSET, Unset
from windlass.core.signals import Cancel, PermanentFailure, Release, Retry, Snooze
from windlass.engine.context import Context, current
from windlass.handlers.registered import Registered, RunsIn

tenant_here: ContextVar[str | None] = ContextVar("tenant_here", default=None)


class Plain:
    """Arguments as they stand in the payload."""

    def __init__(self, **wants: type) -> None:
        self.wants: Mapping[str, type] = wants

    def decode(self, job: Job) -> dict[str, Any]:
        try:
            return msgspec.json.decode(job.payload or b"{}", type=dict[str, Any])
        except msgspec.MsgspecError as error:
            raise DecodeError(str(error)) from None


class Pool:
    """What the lifespan gives."""

    opened = 0


class Home:
    """As much of an app as a child process needs."""

    def __init__(self) -> None:
        url = os.environ.get("HOME_URL", "memory://")
        self.client: Client = windlass.connect(url, retry=Fixed(7, give_up_on=(ZeroDivisionError,)))

    @asynccontextmanager
    async def open_lifespan(self) -> AsyncGenerator[Mapping[type, Any], None]:
        Pool.opened += 1
        yield {Pool: Pool()}
        if path := os.environ.get("HOME_CLOSED"):
            Path(path).write_text(f"{os.getpid()}\n")

    @asynccontextmanager
    async def tenant_scope(self, tenant: str) -> AsyncGenerator[None, None]:
        token = tenant_here.set(tenant)
        try:
            yield
        except KeyError:
            raise LookupError(f"within {tenant}") from None
        finally:
            tenant_here.reset(token)

    async def close(self) -> None:
        await self.client.close()


class Handled(NamedTuple):
    """As much of a handler as a child process needs."""

    registered: Registered
    app: Home


app = Home()


def job(retry: RetryRule | Unset = UNSET, **wants: type) -> Callable[[Callable[..., Any]], Handled]:
    def register(function: Callable[..., Any]) -> Handled:
        made = Registered(function.__name__, "default", function, RunsIn.PROCESS, Plain(**wants), retry=retry)
        return Handled(made, app)

    return register


@job()
def add(a: int, b: int) -> int:
    return a + b


@job()
async def add_slowly(a: int, b: int) -> int:
    await asyncio.sleep(0)
    return a + b


@job()
def pid() -> int:
    return os.getpid()


@job()
def leave(code: int) -> None:
    os._exit(code)


@job()
def crash() -> None:
    ctypes.string_at(0)


@job()
def run_for_ever() -> None:
    while True:
        pass


@job()
def exit_politely() -> None:
    sys.exit(3)


@job()
async def exit_in_a_task() -> str:
    async def leaving() -> None:
        sys.exit(4)

    beside = asyncio.create_task(leaving())
    await asyncio.sleep(0.01)
    return "went on" if beside.done() else "was not left"


@job()
def interrupt() -> None:
    raise KeyboardInterrupt


@job()
async def fall_in_a_group() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(0))
        raise OSError("one of many")


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise SystemExit

    __repr__ = __str__


@job()
def fall_silently() -> None:
    raise Unspeakable


@job()
def divide_by_zero() -> float:
    return 1 / 0


@job(retry=lambda attempt, error: timedelta(seconds=attempt * 100) if isinstance(error, OSError) else None)
def fall(name: str) -> None:
    raise {"OSError": OSError, "ValueError": ValueError}[name]("fell")


def bad_rule(attempt: int, error: BaseException | None) -> float:
    raise RuntimeError(attempt) from error


@job(retry=bad_rule)
def fall_with_a_bad_rule() -> None:
    raise OSError("fell")


@job()
def signal_by(name: str) -> None:
    signals: dict[str, Exception] = {
        "retry": Retry("again", after=5),
        "snooze": Snooze(6),
        "release": Release(),
        "cancel": Cancel("enough"),
        "fail": PermanentFailure("never"),
    }
    raise signals[name]


@job()
def return_an_object() -> object:
    return object()


@job()
def return_text(length: int) -> str:
    return "x" * length


@job()
def measure(text: str) -> int:
    return len(text)


@job(ctx=Context)
def report(ctx: Context) -> None:
    ctx.progress(1, 3, "begun")
    ctx.log.info("line %s", "one")
    ctx.log.warning("line \ud800 two")
    current().progress(3, 3)


@job()
def log_as_usual() -> None:
    logging.getLogger("theirs").warning("as usual")
    logging.getLogger("windlass").warning("of our own")
    logging.getLogger("theirs").error("at last")


@job(ctx=Context)
def report_and_die(ctx: Context) -> None:
    ctx.log.info("about to die")
    os.kill(os.getpid(), signal.SIGKILL)


@job(ctx=Context)
def report_endlessly(ctx: Context) -> int:
    for number in range(20_000):
        text = f"{number} {'x' * 1000}"
        ctx.log.info(text)
    return 20_000


@job()
def about_me() -> dict[str, Any]:
    ctx = current()
    return {"id": ctx.job.id, "attempt": ctx.attempt, "token": ctx.token, "thread": threading.current_thread().name}


@job(ctx=Context)
def wait_until_stopped(ctx: Context) -> str | None:
    ctx.log.info("waits")
    ctx.cancelled.wait_sync(20)
    return ctx.cancelled.reason


@job(ctx=Context)
async def wait_until_stopped_async(ctx: Context) -> str | None:
    ctx.log.info("waits")
    await ctx.cancelled.wait()
    return ctx.cancelled.reason


@job(ctx=Context)
def ignore_signals(ctx: Context) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ctx.log.info("waits")
    time.sleep(600)


@job(ctx=Context)
def deafen(ctx: Context) -> None:
    ctx.log.info("waits")
    os.closerange(3, 64)
    time.sleep(600)


@job(pool=Pool)
async def lifespans(pool: Pool) -> int:
    return pool.opened


@job(pool=Path)
def want_too_much(pool: Path) -> None: ...


@job(ctx=Context)
def follow(ctx: Context) -> str:
    ctx.then(NewJob("next", {"a": 1}, kind="add"), kv={"k": b"v"})
    return "done"


@job(ctx=Context)
def follow_wrongly(ctx: Context) -> None:
    ctx.then(NewJob(""))


@job(ctx=Context)
async def keep(ctx: Context) -> str:
    await ctx.kv.put("kept", b"by the child")
    return str(await ctx.kv.get("kept"))


@job(ctx=Context)
def settle(ctx: Context) -> str:
    with ctx.transaction() as connection:
        connection.execute("create table if not exists effects (what text)")
        connection.execute("insert into effects values ('done')")
    return "nobody sees this"


@job(ctx=Context)
async def settle_and_fall(ctx: Context) -> None:
    async with ctx.transaction() as connection:
        connection.execute("create table if not exists effects (what text)")
    raise OSError("too late")


@job()
def tenant() -> str | None:
    return tenant_here.get()


@job()
async def tenant_async() -> str | None:
    await asyncio.sleep(0)
    return tenant_here.get()


@job()
def fall_within_a_tenant() -> None:
    raise KeyError("inside")


@job()
def own_loop() -> int:
    async def three() -> int:
        await asyncio.sleep(0)
        return 3

    return asyncio.run(three())


def _under_another_name() -> str:
    return "found"


another_name = job()(_under_another_name)


def never_registered() -> None: ...
