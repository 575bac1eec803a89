"""The life of a child process: it loads the app, serves it, and leaves when its parent says so, or has gone."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn

from windlass.app.app import App
from windlass.app.load import load_app
from windlass.config.settings import find
from windlass.core.errors import AlreadyRunning, AppNotLoaded, Fenced, InvalidValue, WindlassError
from windlass.core.settings import Unset
from windlass.engine.config import ServerConfig
from windlass.engine.context import running
from windlass.engine.executors.forks import leave_forks_alone
from windlass.engine.executors.log_setup import Children
from windlass.engine.job_fields import job_facts
from windlass.engine.kept_log import least_of
from windlass.event_loop import runner_on
from windlass.exit_codes import exit_code_of
from windlass.parent.link import Link
from windlass.parent.log_format import Logs
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
    ToChild,
)
from windlass.parent.output import let_go_of_output
from windlass.parent.serving import Serving
from windlass.parent.signals import OF_THE_TERMINAL

if TYPE_CHECKING:
    from windlass.parent.worker_metrics import WorkerMetrics

logger = logging.getLogger("windlass")

LAST_WORDS: Final = 5.0
"""Seconds that an interpreter has to end by itself, with what the app has asked it to do then."""
BLOCKED_BY: Final = 0.45
ANSWERED_IN: Final = 0.1
GIVEN_BACK_IN: Final = 0.25
"""Seconds after the grace until the event loop is asked, that it has to answer, and to do without it."""
LAST_MOMENT: Final = 0.95
"""Seconds after the grace that a stop may take."""
FENCED_IN: Final = 1.0
"""Seconds that a process has to end after another one has taken its store over."""
AT_LEAST: Final = 0.05
"""Seconds to close the store in when the grace is over, and to write what was printed."""


def main() -> None:
    """Run the child whose parent holds the other end of the descriptor in the last argument."""
    for number in OF_THE_TERMINAL:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, OF_THE_TERMINAL)
    link = Link(int(sys.argv[-1]))
    leave_forks_alone(link.close)
    order = link.order()
    if order is not None:
        code = Child(link, order).live()
        let_go_of_output()
        sys.exit(code)


class Child:
    """One server in a process of its own; `live` returns the exit code."""

    def __init__(self, link: Link, order: Order) -> None:
        """Do what `order` says."""
        self._link = link
        self._order = order
        self._logs = Logs(order.log_format, order.log_level, current_job=_current_job)
        Children.log_setup = self._logs
        self._turn = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._serving: Serving | None = None
        self._told = (True, False, 0)
        self._metrics = None if order.metrics is None else self._serve_metrics(order.metrics)
        self._fenced = False

    def _serve_metrics(self, descriptor: int) -> "WorkerMetrics":
        # it needs an extra, which whoever wants no metrics does without
        from windlass.parent.worker_metrics import WorkerMetrics  # noqa: PLC0415

        return WorkerMetrics(descriptor, lambda: self._serving)

    def live(self) -> int:
        """Serve until there is an end to it."""
        self._logs.begin()
        self._link.listen(self._hear, self._orphaned, self._look)
        try:
            app = load_app(self._order.app)
            # an app that is open by now has them too: they are in the environment
            with contextlib.suppress(AlreadyRunning):
                app.use_flags(self._order.flags)
            config = app.server_config(ServerConfig())
            self._logs.kept_from = least_of(config.job_log_level)
            runner = runner_on(config.event_loop)
            self._link.send(self._introduction(app, config))
        except WindlassError as error:
            return self._refuse(error)
        finally:
            self._logs.take_root()
        with runner:
            return runner.run(self._serve(app, config))

    def _introduction(self, app: App, config: ServerConfig) -> Loaded:
        store = app.client.store
        if self._order.processes > 1 and not store.features.between_processes:
            message = (
                f"{_shown(app)} is worked by one process: leave processes={self._order.processes} out, use SQLite, or "
                "let workers come through `windlass serve`"
            )
            raise InvalidValue(message)
        return Loaded(
            store=_shown(app),
            concurrency=config.concurrency,
            queues=list(config.queues or app.queues),
            kinds=sorted(app.handlers),
            schedules=sorted(app.schedules),
            own_queues=sorted(app.queues),
        )

    def _refuse(self, error: Exception) -> int:
        code = exit_code_of(error)
        text = str(error)
        if not isinstance(error, WindlassError):
            text = "".join(traceback.format_exception(error))
        elif isinstance(error, AppNotLoaded) and error.traceback:
            text = f"{error}\n{error.traceback}"
        self._link.send(Failed(text.rstrip(), code))
        return code

    async def _serve(self, app: App, config: ServerConfig) -> int:
        serving = Serving(
            app, stop_on_error=config.stop_on_error, begins=self._begins, ready=lambda: self._link.send(Ready())
        )
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, serving.stop, self._order.grace)
        with self._turn:
            self._loop, self._serving = loop, serving
        code = 0
        try:
            await serving.run()
        except Exception as error:  # noqa: BLE001 - the parent says it
            code = self._refuse(error)
            if isinstance(error, Fenced):
                # nothing of this process may go on beside the new owner
                serving.over_at = time.monotonic()
        left = LAST_WORDS if serving.over_at is None else serving.over_at - time.monotonic()
        _leave_within(max(AT_LEAST, min(LAST_WORDS, left)), code)
        await app.close()
        if left <= 0:
            # what did not end would be asked and waited for once more
            _leave(code)
        return code

    def _begins(self, server: str) -> None:
        self._logs.name_server(server)
        self._link.send(Begins(server))

    # what the parent says, in the thread of the link

    def _hear(self, message: ToChild) -> None:
        match message:
            case Stop(grace, replaced):
                if replaced and self._metrics is not None:
                    self._metrics.close()
                self._tell(lambda serving: serving.stop(grace))
                self._leave_if_blocked(grace)
            case StopNow():
                self._tell(lambda serving: serving.stop_now())
                self._leave_if_blocked(0)
            case Ended(server):
                self._tell(lambda serving: serving.rescue(server, lambda: self._link.send(Rescued(server))))

    def _orphaned(self) -> None:
        """Stop as if it was told to; nobody else would kill this process if it did not end."""
        grace = self._order.grace
        # before a word is said: nobody may read the log any more, and then it would wait for ever
        _leave_within(grace + LAST_MOMENT, 1)
        self._tell(lambda serving: serving.stop(grace))
        self._leave_if_blocked(grace)
        logger.error("the parent process has ended: stopping; jobs that run have %g s", grace)

    def _tell(self, word: Callable[[Serving], None]) -> None:
        with self._turn:
            loop, serving = self._loop, self._serving
            if loop is None or serving is None:
                # nothing is claimed yet: there is nothing to wait for
                _leave(0)
        with contextlib.suppress(RuntimeError):  # the loop is closed: it leaves already
            loop.call_soon_threadsafe(word, serving)

    def _leave_if_blocked(self, grace: float) -> None:
        """See to it that a handler which blocks the event loop costs no attempt: what runs is given back without it."""
        serving = self._serving
        if serving is None:
            return

        def leave() -> None:
            time.sleep(grace + BLOCKED_BY)
            if not serving.answers(ANSWERED_IN):
                serving.give_back(GIVEN_BACK_IN)
                _leave(0)

        threading.Thread(target=leave, name="windlass stop", daemon=True).start()

    def _leave_fenced(self, serving: Serving, error: Fenced) -> None:
        """See to it that nothing here goes on for long beside the new owner of the store, whatever blocks or holds."""
        code = self._refuse(error)
        _leave_within(FENCED_IN if serving.answers(ANSWERED_IN) else AT_LEAST, code)

    def _look(self) -> None:
        serving = self._serving
        if serving is not None and serving.fenced is not None and not self._fenced:
            self._fenced = True
            self._leave_fenced(serving, serving.fenced)
        health = serving.health() if serving is not None else None
        if health is None:
            return
        # a reason may say for how long, and would be news each time
        told = health.ready, health.replace, len(health.reasons)
        if told != self._told:
            self._told = told
            self._link.send(Reported(health.ready, list(health.reasons), health.replace))


def _current_job() -> dict[str, Any]:
    """Return what is known of the job that this task or thread works for."""
    attempt = running.get()
    if isinstance(attempt, Unset):
        return {}
    return {name: value for name, value in job_facts(attempt.context.job).items() if value is not None}


def _shown(app: App) -> str:
    """Return which store it is, without its password."""
    url = app.config.value("url")
    return type(app.client.store).__name__ if url is None else find("url").show(url)


def _leave_within(seconds: float, code: int) -> None:
    """Let the interpreter end by itself, and leave without it when that takes too long, as threads can make it."""
    timer = threading.Timer(seconds, _leave, (code,))
    timer.daemon = True
    timer.start()


def _leave(code: int) -> NoReturn:
    """End this process, whatever its threads do, and whether or not somebody reads what it writes."""
    last_words = threading.Thread(target=_flush, daemon=True)
    # an interpreter that is ending starts no thread
    with contextlib.suppress(RuntimeError):
        last_words.start()
        last_words.join(AT_LEAST)
    os._exit(code)


def _flush() -> None:
    with contextlib.suppress(Exception):
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
