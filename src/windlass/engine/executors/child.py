"""What runs in a child process: one attempt after the other, in its main thread."""

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import msgspec

from windlass.client.failure import failure_of
from windlass.client.settle import done_in_vain
from windlass.core.errors import DecodeError, EncodeError, PayloadTooLarge
from windlass.core.retry import retry_delay
from windlass.core.settings import DEFAULT, Unset
from windlass.core.verdict import GaveUp, Outcome, Raised, Returned
from windlass.engine.context import running
from windlass.engine.executors.child_desk import ChildDesk
from windlass.engine.executors.ear import Ear
from windlass.engine.executors.find import ChildApp, find
from windlass.engine.executors.forks import leave_forks_alone
from windlass.engine.executors.held import Held
from windlass.engine.executors.lifespans import Lifespans
from windlass.engine.executors.log_setup import LogSetup
from windlass.engine.executors.messages import Begin, Noted, Ready, encode, told
from windlass.engine.executors.wire import Post
from windlass.engine.job_fields import fields_of
from windlass.engine.kept_log import keep_log
from windlass.engine.outcomes import outcome_of
from windlass.engine.ready import ReadyHandler
from windlass.engine.stop_event import StopEvent
from windlass.handlers.registered import RunsIn

logger = logging.getLogger("windlass")

T = TypeVar("T")


def live(link: socket.socket, parent: int, log_setup: LogSetup | None = None) -> None:
    """Run what the server at the other end of `link` sends, until it hangs up."""
    link.settimeout(0)
    leave_forks_alone()
    if log_setup is not None:
        log_setup.begin()
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        Child(link, parent, runner.get_loop(), log_setup).live()


class Known(NamedTuple):
    """A handler that was found before."""

    handler: ReadyHandler
    app: ChildApp


class Child:
    """The life of a child process.

    Its event loop turns while it waits for work and while a coroutine runs. A plain function has the thread for itself
    and may use an event loop of its own.
    """

    def __init__(
        self,
        link: socket.socket,
        parent: int,
        loop: asyncio.AbstractEventLoop,
        log_setup: LogSetup | None = None,
    ) -> None:
        """Live on `loop`."""
        self._loop = loop
        self._log_setup = log_setup
        self._post = Post(link)
        self._inbox: asyncio.Queue[tuple[Begin, StopEvent] | None] = asyncio.Queue()
        self._ear = Ear(link, parent, begin=lambda begin, stop: self._put((begin, stop)), end=lambda: self._put(None))
        self._lifespans = Lifespans()
        self._known: dict[tuple[str, str, str | None], Known] = {}

    def live(self) -> None:
        """Work until there will be no more."""
        self._ear.heed_signals()
        self._ear.listen()
        self._post.send(encode(Ready()))
        while (work := self._run(self._inbox.get())) is not None:
            self._do(*work)
        self._close()

    def _put(self, work: tuple[Begin, StopEvent] | None) -> None:
        self._loop.call_soon_threadsafe(self._inbox.put_nowait, work)

    def _do(self, begin: Begin, stop: StopEvent) -> None:
        # a handler of an earlier attempt may have set its own
        self._ear.heed_signals()
        message = self._attempt(begin, stop)
        self._ear.rest()
        self._post.send(message)

    def _attempt(self, begin: Begin, stop: StopEvent) -> bytes:
        try:
            known = self._find(begin)
            desk = ChildDesk(begin, stop, app=known.app, loop=self._loop, note=self._note)
            outcome = self._outcome(begin, known, desk)
            beside = {"next_jobs": desk.next_jobs, "kv_writes": desk.kv_writes, "settled": desk.settled}
            return encode(msgspec.structs.replace(told(begin.run, outcome), **beside))
        except BaseException as error:  # noqa: BLE001 - whatever a module raises at its import is the end of one attempt
            return encode(told(begin.run, Raised(failure_of(error))))

    def _find(self, begin: Begin) -> Known:
        name = begin.module, begin.function, begin.kind
        known = self._known.get(name)
        if known is None:
            registered, app = find(*name)
            if self._log_setup is not None:
                self._log_setup.take_root()
            if not self._known:
                # after the module of the handler, which may set up a log of its own
                keep_log()
            provided = self._run(self._lifespans.of(app))
            # this is where it runs, so it is given what it wants here
            here = replace(registered, runs_in=RunsIn.THREAD)
            known = self._known[name] = Known(ReadyHandler(here, provided, timeout=None), app)
        return known

    def _outcome(self, begin: Begin, known: Known, desk: ChildDesk) -> Outcome:
        try:
            arguments = _arguments(known.handler, desk)
        except DecodeError as error:
            return GaveUp(failure_of(error))
        context = copy_context()
        context.run(running.set, desk)
        try:
            value = self._in_scope(lambda: known.handler.function(**arguments), known.app, begin.job.tenant, context)
        except BaseException as error:  # noqa: BLE001 - nothing that a handler raises may end the child
            return self._failed(error, begin, known, desk)
        return _returned(value, known.app) if not desk.settled else Returned()

    def _in_scope(self, call: Callable[[], Any], app: ChildApp, tenant: str | None, context: Context) -> object:
        provider = app.tenant_scope
        if provider is None or tenant is None:
            return self._call(call, context)
        scope = Held(provider(tenant))
        self._run(scope.open(context), context)
        try:
            value = self._call(call, context)
        except BaseException as error:  # noqa: BLE001 - the scope raises it again
            self._run(scope.close(error), context)
            return None
        self._run(scope.close(), context)
        return value

    def _call(self, call: Callable[[], Any], context: Context) -> object:
        value = context.run(call)
        return self._run(value, context) if asyncio.iscoroutine(value) else value

    def _failed(self, error: BaseException, begin: Begin, known: Known, desk: ChildDesk) -> Outcome:
        outcome = outcome_of(error, job=begin.job, reason=desk.cancelled.reason, timeout=None)
        if not isinstance(outcome, Raised) or outcome.delay is not None or outcome.error is None:
            return outcome
        try:
            own = known.handler.retry
            rule = known.app.client.settings.of(begin.job.queue).retry if isinstance(own, Unset) else own
            delay = retry_delay(rule, begin.job.attempt, error, begin.draw)
        except Exception:
            text = "the retry policy of job %s failed; the default holds"
            logger.exception(text, begin.job.id, extra=fields_of(begin.job))
            delay = retry_delay(DEFAULT.retry, begin.job.attempt, error, begin.draw)
        return GaveUp(outcome.failure) if delay is None else Raised(outcome.failure, delay=delay)

    def _note(self, note: Noted) -> None:
        self._post.send(encode(note), may_be_lost=True)

    def _run(self, work: Coroutine[Any, Any, T], context: Context | None = None) -> T:
        """Return what `work` returns; what leaves other tasks of the loop does not end it."""
        task = self._loop.create_task(work, context=context)
        while not task.done():
            try:
                self._loop.run_until_complete(task)
            except BaseException:
                if not task.done():
                    logger.exception("something beside the job stopped the event loop; it goes on")
        return task.result()

    def _close(self) -> None:
        left = True
        while left:
            try:
                left = self._run(self._lifespans.close_last())
            except BaseException:
                logger.exception("a child process could not close all that it had opened")


def _arguments(handler: ReadyHandler, desk: ChildDesk) -> dict[str, Any]:
    arguments = handler.decode(desk.job)
    arguments.update(handler.extras)
    if handler.context_name is not None:
        arguments[handler.context_name] = desk.context
    return arguments


def _returned(value: object, app: ChildApp) -> Outcome:
    if value is None:
        return Returned()
    try:
        return Returned(*app.client.preparer.encode(value, "result"))
    except (EncodeError, PayloadTooLarge) as error:
        return done_in_vain(error)
    except BaseException as error:  # noqa: BLE001 - a value may bring code of its own, which fails as it likes
        why = failure_of(error).summary
        return done_in_vain(EncodeError(f"a value of type {type(value).__name__} cannot be encoded ({why})"))
