"""Handlers that child processes run, and that do what nobody should; with what others raise and return."""

import asyncio
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pydantic

import windlass
from windlass.core.duration import LONGEST
from windlass.core.errors import ClaimLost, DecodeError
from windlass.core.signals import Cancel, PermanentFailure, Retry, Snooze
from windlass.engine.context import Context

app = windlass.App("memory://", retry=windlass.NoRetry())


def leave() -> None:
    os._exit(7)


def crash() -> None:
    ctypes.string_at(0)


def abort() -> None:
    os.abort()


def exit_politely() -> None:
    sys.exit(3)


def spin() -> None:
    while True:
        pass


def deaf() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(60)


def heed(ctx: Context) -> str | None:
    ctx.progress(1)
    ctx.cancelled.wait_sync(30)
    return ctx.cancelled.reason


def pid() -> int:
    return os.getpid()


# a child process finds a handler among the names of its module
leave_handler = app.job(process=True)(leave)
crash_handler = app.job(process=True)(crash)
abort_handler = app.job(process=True)(abort)
exit_handler = app.job(process=True)(exit_politely)
spin_handler = app.job(process=True)(spin)
deaf_handler = app.job(process=True)(deaf)
heed_handler = app.job(process=True)(heed)
pid_handler = app.job(process=True)(pid)


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")

    __repr__ = __str__


class ExitsWhenAsked(Exception):
    def __str__(self) -> str:
        raise SystemExit(4)

    __repr__ = __str__


class SaysNumbers(Exception):
    def __str__(self) -> Any:  # noqa: ANN401 - wrong on purpose
        return 42  # noqa: PLE0307 - as above


class Text(str):
    __slots__ = ()

    def encode(self, *_: Any, **__: Any) -> bytes:  # noqa: ANN401 - wrong on purpose
        raise RuntimeError("not to be encoded")


class SaysHostileText(Exception):
    def __str__(self) -> str:
        return Text("text")


class Nameless(type):
    def __getattribute__(cls, name: str) -> Any:  # noqa: ANN401 - wrong on purpose
        if name in ("__qualname__", "__name__"):
            raise RuntimeError("no name")
        return super().__getattribute__(name)


class HasNoName(Exception, metaclass=Nameless):
    pass


class HasNoClass(Exception):
    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401 - wrong on purpose
        if name == "__class__":
            raise RuntimeError("no class")
        return super().__getattribute__(name)


def cyclic() -> Exception:
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    return one


def chained() -> Exception:
    error = ValueError("the last of many")
    for number in range(500):
        following = ValueError(f"number {number}")
        following.__cause__ = error
        error = following
    return error


def noted() -> Exception:
    error: Any = ValueError("noted")
    error.__notes__ = [Unspeakable(), 42]
    made: Exception = error
    return made


def changed(error: Any, name: str, value: object) -> BaseException:  # noqa: ANN401 - wrong on purpose
    setattr(error, name, value)
    made: BaseException = error
    return made


def undecodable() -> Exception:
    return UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")


def recurse() -> BaseException:
    def deeper(depth: int) -> int:
        return deeper(depth + 1) + 1

    try:
        deeper(0)
    except RecursionError as error:
        return error
    raise AssertionError


def local() -> BaseException:
    gone: type[BaseException] = type("Gone", (Exception,), {})
    return gone("its class is gone")


RAISED: dict[str, Callable[[], BaseException]] = {
    "plain": lambda: ValueError("plain"),
    "system exit": lambda: SystemExit(1),
    "system exit in words": lambda: SystemExit("words"),
    "interrupt": KeyboardInterrupt,
    "generator exit": GeneratorExit,
    "cancelled": asyncio.CancelledError,
    "base": lambda: BaseException("base"),
    "group": lambda: ExceptionGroup("many", [ValueError("a"), OSError("b")]),
    "base group": lambda: BaseExceptionGroup("many", [KeyboardInterrupt(), SystemExit(2)]),
    "group of the unspeakable": lambda: ExceptionGroup("many", [Unspeakable()]),
    "stop iteration": StopIteration,
    "stop async iteration": StopAsyncIteration,
    "recursion": recurse,
    "memory": MemoryError,
    "undecodable": undecodable,
    "timeout": TimeoutError,
    "unspeakable": Unspeakable,
    "exits when asked": ExitsWhenAsked,
    "says numbers": SaysNumbers,
    "says hostile text": SaysHostileText,
    "no name": HasNoName,
    "no class": HasNoClass,
    "surrogate": lambda: ValueError("\ud800"),
    "nul": lambda: ValueError("a\0b"),
    "long": lambda: ValueError("x" * 5_000_000),
    "empty": lambda: ValueError(""),
    "wordless": ValueError,
    "cyclic": cyclic,
    "chained": chained,
    "noted": noted,
    "gone": local,
    "claim lost": lambda: ClaimLost("of somebody else"),
    "decode error": lambda: DecodeError("of something else"),
    "unique conflict": lambda: windlass.UniqueConflict("key", "somebody"),
    "retry by a word": lambda: changed(Retry(), "after", "soon"),
    "retry in the past": lambda: changed(Retry(), "after", timedelta(-1)),
    "snooze by a word": lambda: changed(Snooze(1), "delay", "soon"),
    "cancel by a number": lambda: changed(Cancel(), "reason", 42),
    "permanent surrogate": lambda: PermanentFailure("\udfff"),
    "html": lambda: ValueError("<script>alert(1)</script>\x1b[31m\r\n"),
}

PUT_OFF: dict[str, Callable[[], BaseException]] = {
    "retry at the end of time": lambda: Retry(after=LONGEST),
    "snooze until the end of time": lambda: Snooze(LONGEST),
}


class Exits(pydantic.BaseModel):
    @pydantic.model_serializer
    def leave(self) -> str:
        raise SystemExit(5)


class Falls(pydantic.BaseModel):
    @pydantic.model_serializer
    def fall(self) -> str:
        raise LookupError("in the model")


class Iterates:
    def __iter__(self) -> Any:  # noqa: ANN401 - wrong on purpose
        raise SystemExit(6)


def circle() -> list[object]:
    made: list[object] = []
    made.append(made)
    return made


def deep() -> list[object]:
    made: list[object] = []
    for _ in range(100_000):
        made = [made]
    return made


async def unawaited() -> None: ...


RETURNED: dict[str, Callable[[], object]] = {
    "object": object,
    "class": lambda: int,
    "function": lambda: circle,
    "exception": lambda: ValueError("returned"),
    "generator": lambda: (number for number in range(3)),
    "coroutine": unawaited,
    "circle": circle,
    "deep": deep,
    "surrogate": lambda: "\ud800",
    "tuple keys": lambda: {(1, 2): 3},
    "object keys": lambda: {object(): 3},
    "too large": lambda: "x" * 2_000_000,
    "too many bytes": lambda: b"x" * 2_000_000,
    "model that exits": Exits,
    "model that falls": Falls,
    "iterates by exiting": Iterates,
    "no class": HasNoClass,
    "module": lambda: sys,
    "file": lambda: sys.stdout,
}
