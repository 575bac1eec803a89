"""Makes calls on our own connections, and repeats them where that is right."""

import asyncio
import random
import secrets
from typing import Any, Final
from urllib.parse import quote

from windlass.api.operations import Operation
from windlass.core.errors import OutcomeUnknown, StoreUnavailable, WindlassError
from windlass.core.failpoint import reach
from windlass.kit.connections import Connections
from windlass.kit.doubt import in_doubt
from windlass.stores.http.faults import Fault, ReadProblem, Refused, kind, leaves_doubt, refusal, translate
from windlass.stores.http.headers import first_sent_header, request_header, usual_headers
from windlass.stores.http.options import Options
from windlass.stores.http.wire import Wire, open_wire

_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 1.0
_LAST_TRY: Final = 0.05
"""Seconds before its deadline after which a call is not tried again: it would only be left alone, and in doubt."""
_JSON: Final = b"content-type: application/json\r\n"
NOBODY: Final = "unknown"
"""Stands for a process that has not been heard of: none goes by this name, so that none guesses."""


class Runner:
    """Makes the calls of one store; every call ends at its deadline, whatever the network does."""

    def __init__(self, options: Options, read_problem: ReadProblem) -> None:
        """Connect to nothing yet; `read_problem` makes an error of the body of a refusal."""
        self._options = options
        self._read_problem = read_problem
        self._headers = usual_headers(options)
        self._serving = NOBODY
        self._paths: dict[str, bytes] = {}
        self.met: str | None = None
        """What a call has met last, as users are told; None before that."""
        self._connections = Connections(
            self._open,
            most=options.connections,
            where=options.where,
            is_lost=lambda error: kind(error) is Fault.LOST,
            translate=translate,
            patient=False,
        )

    @property
    def where(self) -> str:
        """Name the server for people."""
        return self._options.where

    async def call(
        self,
        operation: Operation[Any, Any],
        body: bytes = b"",
        *,
        query: str = "",
        job_id: str = "",
        request_id: str | None = None,
        writes: bool = False,
        doubt: str | None = None,
    ) -> bytes:
        """Return the body of the answer to `operation`; raises the error that the serving process tells.

        Where its path names a job, that is `job_id`.

        When a connection was lost, or nobody is ready to answer, the call is made again until the deadline. One that
        `writes` then goes by the same name, `request_id` or one made here, and says which process it was first sent to.
        If it is still not known at the deadline whether it was done, `OutcomeUnknown(doubt)` is raised, or without a
        `doubt` a `StoreUnavailable` that is retryable.
        """
        call = _Call(operation.method, self._target(operation, query, job_id), body, self._headers)
        if writes:
            call.name(request_id or secrets.token_hex(16))
        call.doubt = doubt
        return await self._finish(call)

    async def close(self) -> None:
        """Let go of every connection."""
        await self._connections.close()

    def abandon(self) -> None:
        """Let go of the parent's connections, in a forked child."""
        self._connections.abandon()

    def _target(self, operation: Operation[Any, Any], query: str, job_id: str) -> bytes:
        path = self._paths.get(operation.name)
        if path is None:
            path = self._paths[operation.name] = (self._options.prefix + operation.path).encode("ascii")
        if b"{id}" in path:
            path = path.replace(b"{id}", quote(job_id, safe="").encode("ascii"))
        return b"%b?%b" % (path, query.encode("ascii")) if query else path

    async def _open(self, timeout: float) -> Wire:
        async with asyncio.timeout(timeout):
            return await open_wire(self._options)

    async def _finish(self, call: "_Call") -> bytes:
        """Make a call until it is answered, or time is over."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._options.timeout
        pause = _FIRST_PAUSE
        while True:
            try:
                return await self._try(call, deadline)
            except Exception as error:  # noqa: BLE001 - judged below, where nothing holds on to its frames
                met = error
            self.met = str(translate(met, self._options.where))
            if kind(met) is Fault.FINAL:
                raise self._verdict(call, met)
            wanted = met.retry_after if isinstance(met, Refused) else 0.0
            left = deadline - _LAST_TRY - loop.time()
            # many who were told to come back at the same time must not
            await asyncio.sleep(min(left, wanted + pause * random.random()))  # noqa: S311 - no secret
            pause = min(pause * 2, _LONGEST_PAUSE)
            if loop.time() > deadline - _LAST_TRY:
                raise self._verdict(call, met)

    async def _try(self, call: "_Call", deadline: float) -> bytes:
        try:
            connections = self._connections
            with connections.lent(connections.take_idle() or await connections.take(deadline)) as wire:
                return await self._make(call, wire, deadline)
        except Exception as error:
            if call.sent_to is not None and call.writes and leaves_doubt(error):
                call.repeats(call.sent_to)
            call.sent_to = None
            raise

    async def _make(self, call: "_Call", wire: Wire, deadline: float) -> bytes:
        reach("http.before_call")
        call.sent_to = wire.serving or self._serving
        reply = await wire.ask(call.method, call.target, call.headers, call.body, deadline=deadline)
        reach("http.after_call")
        if wire.serving is not None:
            self._serving = wire.serving
        refused = refusal(reply, self._options, self._read_problem)
        if refused is not None:
            raise refused
        return reply.body

    def _verdict(self, call: "_Call", error: Exception) -> WindlassError:
        fault = translate(error, self._options.where)
        if isinstance(fault, OutcomeUnknown):
            unknown = _unknown(call, self._options.where)
            unknown.__cause__ = fault
            return unknown
        if call.in_doubt and isinstance(fault, StoreUnavailable):
            return in_doubt(fault, call.doubt)
        return fault


def _unknown(call: "_Call", where: str) -> WindlassError:
    if call.doubt is not None:
        return OutcomeUnknown(call.doubt)
    return StoreUnavailable(
        f"{where} was restarted before it could answer, and it is not known whether the call was done: look, and make "
        "it again if it was not"
    )


class _Call:
    """What is asked for, ready to be sent, and what became of it so far."""

    __slots__ = ("body", "doubt", "headers", "in_doubt", "method", "sent_to", "target", "writes")

    def __init__(self, method: str, target: bytes, body: bytes, headers: bytes) -> None:
        self.method = method.encode()
        self.target = target
        self.headers = headers + _JSON if body else headers
        self.body = body
        self.writes = False
        self.doubt: str | None = None
        self.sent_to: str | None = None
        self.in_doubt = False

    def name(self, request_id: str) -> None:
        """Let the serving side know it again."""
        self.writes = True
        self.headers += request_header(request_id)

    def repeats(self, sent_to: str) -> None:
        """Say from now on which process it was sent to, the first time that nobody knows what became of it."""
        if not self.in_doubt:
            self.in_doubt = True
            self.headers += first_sent_header(sent_to)
