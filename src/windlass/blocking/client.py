"""The blocking form of the client: the same names, one thin layer over the async one."""

import atexit
import os
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from functools import cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self, TypeVar
from weakref import WeakSet, finalize

from windlass.blocking.layer import Blocking, BlockingListing
from windlass.blocking.portal import Portal
from windlass.client.client import Client
from windlass.client.kv import KeyValue
from windlass.client.lock import HeldLock
from windlass.core.duration import Duration
from windlass.core.errors import ClientClosed
from windlass.core.job import Job

if TYPE_CHECKING:
    from windlass.blocking.schedules import BlockingSchedules

R = TypeVar("R")


class BlockingKeyValue:
    """The caller's own key space, by blocking calls."""

    def __init__(self, client: "BlockingClient") -> None:
        """Work through `client`."""
        self._client = client

    def run(self, call: Callable[[KeyValue], Coroutine[Any, Any, R]]) -> R:
        """Return what `call` returns for the key space."""
        return self._client.run(lambda client: call(client.kv))

    get = Blocking(KeyValue.get)
    put = Blocking(KeyValue.put)
    delete = Blocking(KeyValue.delete)
    compare_and_set = Blocking(KeyValue.compare_and_set)
    compare_and_delete = Blocking(KeyValue.compare_and_delete)
    scan = BlockingListing(KeyValue.scan)


class Side:
    """What a client is in one process: it does not outlive a fork, so each process makes its own."""

    def __init__(self, client: Client) -> None:
        """Run `client` in a loop of its own."""
        self.client = client
        self.portal = Portal()

    def close(self) -> None:
        """Close the client and end its loop."""
        self.portal.close(self.client.close)

    def leave(self) -> None:
        """Let the client close by itself."""
        self.portal.leave(self.client.close)


class BlockingClient:
    """A client for programs without an event loop; may be shared by threads, and is made anew after a fork.

    Its methods are those of `Client`, with the same signatures, and return when they are done. It closes by `with`, by
    `close()`, or with the program.

    ```python
    import windlass

    with windlass.connect_sync("sqlite:///jobs.db") as client:
        client.enqueue("email", {"to": "me"})
        claim = client.claim("email")
        print(client.decode(claim.job))
        client.ack(claim)
    ```
    """

    def __init__(self, make: Callable[[], Client]) -> None:
        """Make a client now, so that wrong arguments are refused, and another one in each forked process."""
        self._make = make
        # one side for each process that this object lives in; a parent's is kept as it is, and never touched here
        self._sides = {os.getpid(): Side(make())}
        self._closed = False
        # the garbage collector comes by in any thread, also in one that holds a lock which a close would wait for
        finalize(self, _leave_side, self._sides).atexit = False
        _open_clients.add(self)
        self.kv = BlockingKeyValue(self)

    @cached_property
    def schedules(self) -> "BlockingSchedules":
        """The rules in the store that make jobs in time."""
        # loaded when they are asked for, as in the async client
        made: BlockingSchedules = import_module("windlass.blocking.schedules").BlockingSchedules(self)
        return made

    def run(self, call: Callable[[Client], Coroutine[Any, Any, R]]) -> R:
        """Return what `call` returns for the async client, and block until then."""
        side = self._side()
        return side.portal.call(lambda: call(side.client))

    def close(self) -> None:
        """Let go of the store; what was accepted is finished first."""
        self._closed = True
        _open_clients.discard(self)
        # a forked process that ends must not end its parent's client
        side = self._sides.pop(os.getpid(), None)
        if side is not None:
            side.close()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    open = Blocking(Client.open)
    enqueue = Blocking(Client.enqueue)
    enqueue_job = Blocking(Client.enqueue_job)
    enqueue_many = Blocking(Client.enqueue_many)
    claim = Blocking(Client.claim)
    claim_many = Blocking(Client.claim_many)
    ack = Blocking(Client.ack)
    nack = Blocking(Client.nack)
    dead_letter = Blocking(Client.dead_letter)
    snooze = Blocking(Client.snooze)
    release = Blocking(Client.release)
    cancel_claim = Blocking(Client.cancel_claim)
    renew = Blocking(Client.renew)
    cancel = Blocking(Client.cancel)
    cancel_many = Blocking(Client.cancel_many)
    wait = Blocking(Client.wait)
    get = Blocking(Client.get)
    why = Blocking(Client.why)
    jobs = BlockingListing(Client.jobs)
    dead_jobs = BlockingListing(Client.dead_jobs)
    retry = Blocking(Client.retry)
    requeue_dead = Blocking(Client.requeue_dead)
    delete = Blocking(Client.delete)
    reschedule = Blocking(Client.reschedule)
    run_now = Blocking(Client.run_now)
    stats = Blocking(Client.stats)
    stats_by_queue = Blocking(Client.stats_by_queue)
    queues = Blocking(Client.queues)
    pause = Blocking(Client.pause)
    resume = Blocking(Client.resume)
    rescue = Blocking(Client.rescue)
    promote = Blocking(Client.promote)
    prune = Blocking(Client.prune)

    @contextmanager
    def lock(self, name: str, ttl: Duration, *, wait: Duration | None = None) -> Generator[HeldLock, None, None]:
        """Hold a lock for the time of a `with` block, as `Client.lock` does."""
        side = self._side()
        lock = side.client.lock(name, ttl, wait=wait)
        held = side.portal.call(lock.__aenter__)
        try:
            yield held
        except BaseException as error:
            side.portal.call(partial(lock.__aexit__, type(error), error, error.__traceback__))
            raise
        side.portal.call(partial(lock.__aexit__, None, None, None))

    def decode(self, job: Job) -> Any:  # noqa: ANN401 - the JSON edge
        """Return the payload of a job as the value that was enqueued; raises `DecodeError`."""
        return self._side().client.decode(job)

    def decode_result(self, job: Job) -> Any:  # noqa: ANN401 - the JSON edge
        """Return the result of a job as the value that was acked, None when it has none; raises `DecodeError`."""
        return self._side().client.decode_result(job)

    def _side(self) -> Side:
        if self._closed:
            raise ClientClosed
        pid = os.getpid()
        return self._sides.get(pid) or self._sides.setdefault(pid, Side(self._make()))


def _leave_side(sides: dict[int, Side]) -> None:
    side = sides.get(os.getpid())
    if side is not None:
        side.leave()


_open_clients: WeakSet[BlockingClient] = WeakSet()


@atexit.register
def _close_clients() -> None:
    for client in list(_open_clients):
        client.close()
