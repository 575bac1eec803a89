"""A child process, as its server sees it."""

import asyncio
import atexit
import multiprocessing
import os
import signal
import socket
import threading
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnProcess

import msgspec

from windlass.engine.executors.child import live
from windlass.engine.executors.log_setup import Children
from windlass.engine.executors.messages import ToChild, ToParent, decode_to_parent, encode
from windlass.engine.executors.wire import Frames, Post

# never a fork: the server has threads, and a child would wait for ever for a lock that one of them held
_SPAWN = multiprocessing.get_context("spawn")
_alive: "weakref.WeakSet[Spawned]" = weakref.WeakSet()


class Spawned:
    """Started when it is made; hears and is heard on the running event loop."""

    def __init__(self, hear: Callable[[ToParent], None], died: Callable[[str], None]) -> None:
        """Call `hear` with what the child says, and `died` when it has ended, with how. Raises `OSError`."""
        self._hear = hear
        self._died = died
        self._loop = asyncio.get_running_loop()
        self._link, theirs = socket.socketpair()
        self._link.settimeout(0)
        try:
            with theirs:
                self._process = _start(theirs)
        except BaseException:
            self._link.close()
            raise
        self.pid = self._process.pid
        self._server = os.getpid()
        self._hung_up = False
        self._post = Post(self._link)
        self._frames = Frames(self._link)
        self._loop.add_reader(self._link, self._read)
        self._watcher = threading.Thread(target=self._watch, name="windlass child watcher", daemon=True)
        self._watcher.start()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        _alive.add(self)

    def send(self, message: ToChild) -> None:
        """Send a message; may be called from any thread."""
        self._post.send(encode(message))

    def hang_up(self) -> None:
        """Let the child end by itself, at once if it runs something."""
        self._hung_up = True
        with suppress(OSError):  # the child has gone
            self._link.shutdown(socket.SHUT_WR)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._process.terminate()

    def kill(self) -> None:
        """Send SIGKILL."""
        self._process.kill()

    @property
    def is_ours(self) -> bool:
        """Whether this process started it, and is not a copy of the one that did."""
        return os.getpid() == self._server

    def _read(self) -> None:
        if self._frames.receive():
            self._hear_all()
        elif self._frames.ended:
            self._loop.remove_reader(self._link)
            if not self._hung_up:
                # whoever cannot speak any more cannot say how its attempt ends either
                self.kill()

    def _hear_all(self) -> None:
        try:
            for message in map(decode_to_parent, self._frames.messages()):
                self._hear(message)
        except msgspec.MsgspecError:
            # something else wrote to the link
            self.kill()

    def _watch(self) -> None:
        self._process.join()
        # a loop that was closed has nobody left to tell
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        # its last words may still be on their way
        while self._frames.receive():
            self._hear_all()
        self._loop.remove_reader(self._link)
        self._link.close()
        self._watcher.join()
        how = _how(self._process.exitcode)
        with suppress(ValueError):  # somebody else reaped it
            self._process.close()
        _alive.discard(self)
        self.gone.set_result(None)
        self._died(how)


def _start(theirs: socket.socket) -> SpawnProcess:
    process = _SPAWN.Process(target=live, args=(theirs, os.getpid(), Children.log_setup), name="windlass child")
    # it lets interrupts through to this thread when it starts, so it must run before they are held back
    resource_tracker.ensure_running()
    with _uninterrupted():
        process.start()
    return process


@contextmanager
def _uninterrupted() -> Generator[None, None, None]:
    """Keep an interrupt from the keyboard from a child that has not come up yet: it inherits what is blocked."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _how(code: int | None) -> str:
    if code is None:
        return "ended, nobody knows how"
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"


def _kill_all() -> None:
    """Leave no child behind: multiprocessing would wait for them before the interpreter ends."""
    for child in list(_alive):
        if child.is_ours:
            child.kill()


atexit.register(_kill_all)
