"""A child, as its parent sees it."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress

import msgspec

from windlass.parent.lines import Lines
from windlass.parent.messages import Order, ToChild, ToParent, decode_to_parent, encode
from windlass.parent.signals import OF_THE_TERMINAL


class ChildProcess:
    """A fresh interpreter with one server; it runs from the moment that this is made."""

    def __init__(self, order: Order, environment: Mapping[str, str], port: socket.socket | None = None) -> None:
        """Start it; raises `OSError` when the system has no room for it. On `port` it serves its metrics."""
        self.link, theirs = socket.socketpair()
        self.link.settimeout(0)
        # -P: a file of the app that is called like a module of Python is not taken for it
        command = [sys.executable, "-P", "-m", "windlass.parent", order.app, str(theirs.fileno())]
        try:
            with theirs, _terminal_held_back():
                given = (theirs.fileno(),) if port is None else (theirs.fileno(), port.fileno())
                self._process = subprocess.Popen(command, env=dict(environment), pass_fds=given)  # noqa: S603 - our own interpreter and module
        except BaseException:
            self.link.close()
            raise
        self.pid = self._process.pid
        self.began_at = time.monotonic()
        self.server: str | None = None
        """The server that there may be claims of."""
        self.ready = False
        self.told = False
        """Whether its end is the parent's wish."""
        self.refused = False
        self.kill_at: float | None = None
        self._lines = Lines(self.link)
        self._write(encode(msgspec.structs.replace(order, metrics=None if port is None else port.fileno())))

    @property
    def name(self) -> str:
        """How people know it."""
        return f"child {self.pid}" if self.server is None else f"child {self.pid} (server {self.server})"

    @property
    def listens(self) -> bool:
        """Whether it may still say something."""
        return not self._lines.ended

    def send(self, message: ToChild) -> None:
        """Say something; one that has ended does not hear it."""
        self._write(encode(message))

    def receive(self) -> list[ToParent]:
        """Return what it has said."""
        heard: list[ToParent] = []
        for line in self._lines.receive():
            # something else may have written to the link
            with suppress(msgspec.MsgspecError):
                heard.append(decode_to_parent(line))
        return heard

    def ended(self) -> int | None:
        """Return how it ended, as `subprocess` does, or None while it runs. Then the system knows it no more."""
        return self._process.poll()

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()

    def _write(self, line: bytes) -> None:
        # it fails when the child has ended, which is seen elsewhere
        with suppress(OSError):
            self.link.send(line + b"\n")


@contextmanager
def _terminal_held_back() -> Generator[None]:
    """Keep what a terminal sends from a child that has not come up yet: it inherits what is blocked."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, OF_THE_TERMINAL)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def child_environment(flags: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a child, with `variables` of ours: what it starts itself has the same settings."""
    return {**os.environ, **{variables[name]: value for name, value in flags.items()}}


def how_it_ended(code: int) -> str:
    """Return what a return code says, as `subprocess` gives it: below zero it is the number of a signal."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
