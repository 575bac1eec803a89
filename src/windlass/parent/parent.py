"""The parent process: starts children, restarts them when they die, and stops them when it is told to."""

import difflib
import logging
import selectors
import signal
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final

from windlass.parent.child_process import ChildProcess, how_it_ended
from windlass.parent.messages import (
    Begins,
    Ended,
    Failed,
    Loaded,
    Order,
    Ready,
    Reported,
    Rescued,
    Stop,
    StopNow,
    ToParent,
)
from windlass.parent.orphans import bury_orphans
from windlass.parent.reload import SourceWatch
from windlass.parent.restarts import Restarts
from windlass.parent.signals import AT_ONCE, GRACEFUL, Signals
from windlass.version import VERSION

logger = logging.getLogger("windlass")

KILLED_AFTER: Final = 0.9
"""Seconds after its grace at which a child that does not end is killed: all is over within a second."""
LOOK_AT_SOURCE: Final = 0.5
RELOAD_GRACE: Final = 2.0
"""Seconds that jobs have to finish when the source has changed."""
AFTER_A_SIGNAL: Final = 128
_SHOWN: Final = 8


@dataclass
class Place:
    """One of the children that there should be: who fills it, or when it is filled again."""

    number: int
    child: ChildProcess | None = None
    start_at: float | None = 0.0
    restarts: Restarts = field(default_factory=Restarts)


class Parent:
    """Keeps as many children alive as were ordered, until a signal; imports nothing of the app."""

    def __init__(
        self,
        order: Order,
        start: Callable[[int], ChildProcess],
        *,
        draw: Callable[[], float],
        source: SourceWatch | None = None,
    ) -> None:
        """Start children by `start`, which is told the place of each, from 0; `draw` gives chance.

        With `source` they are started anew when it has changed.
        """
        self._order = order
        self._start_child = start
        self._draw = draw
        self._source = source
        self._places = [Place(number) for number in range(order.processes)]
        self._children: set[ChildProcess] = set()
        self._dead: dict[str, None] = {}
        """Servers whose processes have ended, until a child has given back what they held."""
        self._selector = selectors.DefaultSelector()
        self._exit_code: int | None = None
        self._by_signal = False
        self._look_at = 0.0
        self._introduced = False
        self._was_ready = False

    def run(self) -> int:
        """Work until it is told to stop; return the exit code."""
        with Signals() as signals, self._selector:
            self._selector.register(signals.link, selectors.EVENT_READ)
            while self._exit_code is None or self._children:
                self._fill_places()
                for key, _ in self._selector.select(self._pause()):
                    if isinstance(key.data, ChildProcess):
                        self._hear(key.data)
                for number in signals.receive():
                    self._signalled(number)
                self._bury_all()
                self._kill_late()
                self._look_at_source()
        logger.info("stopped")
        return self._exit_code

    # children that come

    def _fill_places(self) -> None:
        """Fill the first place that is due: between two of them signals are heard."""
        now = time.monotonic()
        for place in self._places:
            if place.start_at is not None and place.start_at <= now:
                self._fill(place)
                return

    def _fill(self, place: Place) -> None:
        try:
            child = self._start_child(place.number)
        except OSError as error:
            wait = place.restarts.after(0, self._draw())
            place.start_at = time.monotonic() + wait
            logger.error("no child can be started, again in %.1f s: %s", wait, error)  # noqa: TRY400 - it is the system's
            return
        place.child, place.start_at = child, None
        self._children.add(child)
        self._selector.register(child.link, selectors.EVENT_READ, child)

    # what they say

    def _hear(self, child: ChildProcess) -> None:
        for message in child.receive():
            self._heard(child, message)
        if not child.listens and child.link in self._selector.get_map():
            self._selector.unregister(child.link)

    def _heard(self, child: ChildProcess, message: ToParent) -> None:
        match message:
            case Loaded():
                self._introduce(message)
            case Begins(server):
                child.server = server
            case Ready():
                child.ready = True
                for server in self._dead:
                    child.send(Ended(server))
                self._tell_when_ready()
            case Reported():
                self._reported(child, message)
            case Rescued(server):
                self._dead.pop(server, None)
            case Failed(text, code):
                self._refused(child, text, code)

    def _introduce(self, loaded: Loaded) -> None:
        if self._introduced:
            return
        self._introduced = True
        logger.info(
            "windlass %s works %s on %s: %s, %s at once each; queues %s; kinds %s; schedules %s",
            VERSION,
            self._order.app,
            loaded.store,
            _counted(self._order.processes, "process", "processes"),
            _counted(loaded.concurrency, "job", "jobs"),
            _listed(loaded.queues),
            _listed(loaded.kinds),
            _listed(loaded.schedules),
        )
        for queue in loaded.strange_queues:
            text = (
                "no handler of the app is for queue %r%s: only what is sent there by name is worked; its queues are %s"
            )
            logger.warning(text, queue, _meant(queue, loaded.own_queues), _listed(loaded.own_queues))

    def _tell_when_ready(self) -> None:
        ready = [place.child for place in self._places if place.child is not None and place.child.ready]
        if len(ready) == len(self._places) and not self._was_ready and self._exit_code is None:
            self._was_ready = True
            logger.info("ready: %s", ", ".join(child.name for child in ready))

    def _reported(self, child: ChildProcess, report: Reported) -> None:
        if report.ready:
            logger.info("%s is ready again", child.name)
            return
        logger.warning("%s is not ready: %s", child.name, "; ".join(report.reasons))
        place = self._place_of(child)
        if report.replace and place is not None and self._exit_code is None:
            logger.warning("%s is replaced: another one is started, and it drains", child.name)
            self._fill(place)
            self._tell_to_stop(child, self._order.grace, replaced=True)

    def _refused(self, child: ChildProcess, text: str, code: int) -> None:
        child.refused = child.told = True
        if self._exit_code is not None:
            return
        logger.error("%s", text)
        if self._source is None:
            self._stop(code, self._order.grace)
        else:
            logger.info("waiting for a change of the source")

    # stopping

    def _signalled(self, number: signal.Signals) -> None:
        if number in GRACEFUL and not self._by_signal:
            self._by_signal = True
            grace = self._order.grace
            logger.info("%s: stopping; jobs that run have %g s, once more stops at once", number.name, grace)
            self._stop(0, grace)
        elif number in (*GRACEFUL, AT_ONCE):
            self._by_signal = True
            logger.warning("%s: stopping at once; what runs is given back", number.name)
            self._exit_code = AFTER_A_SIGNAL + number
            self._stop(self._exit_code, 0)
            for child in self._children:
                child.send(StopNow())
                kill_at = time.monotonic() + KILLED_AFTER
                # a third signal does not put it off
                child.kill_at = kill_at if child.kill_at is None else min(child.kill_at, kill_at)

    def _stop(self, code: int, grace: float) -> None:
        """End with `code` when all children have; the first reason to stop says which."""
        if self._exit_code is None:
            self._exit_code = code
        for place in self._places:
            place.start_at = None
        for child in self._children:
            self._tell_to_stop(child, grace)

    def _tell_to_stop(self, child: ChildProcess, grace: float, *, replaced: bool = False) -> None:
        if child.kill_at is None:
            child.told = True
            child.kill_at = time.monotonic() + grace + KILLED_AFTER
            child.send(Stop(grace, replaced))

    def _kill_late(self) -> None:
        now = time.monotonic()
        for child in self._children:
            if child.kill_at is not None and child.kill_at <= now:
                logger.error("%s does not end: it is killed", child.name)
                child.kill()
                child.kill_at = now + 1

    # children that go

    def _bury_all(self) -> None:
        for child in list(self._children):
            if (code := child.ended()) is not None:
                self._bury(child, code)
        bury_orphans({child.pid for child in self._children})

    def _bury(self, child: ChildProcess, code: int) -> None:
        # its last words may say why
        self._hear(child)
        if child.link in self._selector.get_map():
            # a process that it had forked holds the other end
            self._selector.unregister(child.link)
        child.link.close()
        self._children.discard(child)
        if child.server is not None and (code or self._exit_code is None):
            self._hand_over(child.server)
        place = self._place_of(child)
        if place is None or self._exit_code is not None:
            self._tell_of_end(child, code, "")
            if place is not None:
                place.child = None
            return
        place.child = None
        self._was_ready = False
        if child.refused:
            return
        wait = 0.0 if child.told else place.restarts.after(time.monotonic() - child.began_at, self._draw())
        place.start_at = time.monotonic() + wait
        self._tell_of_end(child, code, f"; another one is started {f'in {wait:.1f} s' if wait else 'at once'}")

    def _tell_of_end(self, child: ChildProcess, code: int, then: str) -> None:
        if child.told:
            logger.debug("%s %s%s", child.name, how_it_ended(code), then)
            return
        lived = time.monotonic() - child.began_at
        hint = " (did the system run out of memory?)" if code == -signal.SIGKILL else ""
        logger.error("%s %s after %.1f s%s%s", child.name, how_it_ended(code), lived, hint, then)

    def _hand_over(self, server: str) -> None:
        """Let a child that works give back what a server held; who comes later is told as well."""
        self._dead[server] = None
        ready = [child for child in self._children if child.ready]
        if ready:
            min(ready, key=lambda child: child.told).send(Ended(server))

    def _place_of(self, child: ChildProcess) -> Place | None:
        return next((place for place in self._places if place.child is child), None)

    # the source

    def _look_at_source(self) -> None:
        now = time.monotonic()
        if self._source is None or self._exit_code is not None or now < self._look_at:
            return
        self._look_at = now + LOOK_AT_SOURCE
        if not (changed := self._source.changed()):
            return
        logger.info("%s changed: starting anew", _listed(changed))
        self._introduced = self._was_ready = False
        for place in self._places:
            place.restarts = Restarts()
            if place.child is None:
                place.start_at = now
            else:
                place.child.refused = False
                self._tell_to_stop(place.child, min(RELOAD_GRACE, self._order.grace))

    def _pause(self) -> float | None:
        """Return how many seconds until something is due by itself."""
        due = [place.start_at for place in self._places if place.start_at is not None]
        due += [child.kill_at for child in self._children if child.kill_at is not None]
        if self._source is not None and self._exit_code is None:
            due.append(self._look_at)
        return max(0.0, min(due) - time.monotonic()) if due else None


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def _meant(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _listed(names: Collection[str]) -> str:
    shown = ", ".join(list(names)[:_SHOWN])
    left = len(names) - _SHOWN
    return f"{shown} and {left} more" if left > 0 else shown or "none"
