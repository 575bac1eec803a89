"""A Cluster for one test alone, whose slots move and whose masters are killed."""

from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.redis.asking import wait_until
from tests.redis.forming import CLUSTERED, MASTERS, NEVER, QUICKLY, form, give_up_after, id_of, is_whole, shards_of
from tests.redis.private import PrivateRedis

_TIMEOUT: Final = 15_000
"""For a call that one server makes to another, in milliseconds."""


class PrivateCluster:
    """Three masters, each with `replicas`; as a context manager they are started, and in the end killed and removed.

    `conf` goes over their settings, `program` is another Redis than that of the run.
    """

    def __init__(
        self,
        *,
        replicas: int = 0,
        program: Path | None = None,
        conf: Mapping[str, str] | None = None,
    ) -> None:
        settings = {**CLUSTERED, **(conf or {})}
        count = MASTERS * (1 + replicas)
        self.servers: Final = [PrivateRedis(program=program, conf=settings) for _ in range(count)]

    @property
    def url(self) -> str:
        """Where all of its servers are, without a prefix."""
        return f"redis+cluster://{','.join(f'127.0.0.1:{server.port}' for server in self.servers)}"

    def slot_of(self, key: str) -> int:
        """Return the slot that a key is in."""
        slot: int = self._master().ask("CLUSTER", "KEYSLOT", key)
        return slot

    def master_of(self, slot: int) -> PrivateRedis:
        """Return the server that has a slot."""
        [port] = [shard.ports[0] for shard in shards_of(self._master().port) if shard.first <= slot <= shard.last]
        return self._on(port)

    def another_master(self, slot: int) -> PrivateRedis:
        """Return a master that does not have a slot."""
        has_it = self.master_of(slot)
        return next(server for server in self._masters() if server is not has_it)

    def begin_move(self, slot: int, to: PrivateRedis) -> None:
        """Open a slot for its move: who has it answers for keys that it still has, and with ASK for all others.

        A command on several keys of which it has some is put off with TRYAGAIN.
        """
        has_it = self.master_of(slot)
        to.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", id_of(has_it.port))
        has_it.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", id_of(to.port))

    def move_keys(self, slot: int, to: PrivateRedis, *keys: str) -> None:
        """Move these keys of a slot whose move has begun, or all that there are."""
        has_it = self.master_of(slot)
        while moving := keys or has_it.ask("CLUSTER", "GETKEYSINSLOT", slot, 1000):
            has_it.ask("MIGRATE", "127.0.0.1", to.port, "", 0, _TIMEOUT, "KEYS", *moving)
            if keys:
                return

    def end_move(self, slot: int, to: PrivateRedis) -> None:
        """Give the slot to where its keys are; all other masters answer with MOVED from now on."""
        # who gets it first: were it lost in between, nobody else would know that it had it
        masters = sorted(self._masters(), key=lambda server: server is not to)
        for server in masters:
            server.ask("CLUSTER", "SETSLOT", slot, "NODE", id_of(to.port))

    def move_slot(self, slot: int, to: PrivateRedis) -> None:
        """Move a slot with all of its keys."""
        self.begin_move(slot, to)
        self.move_keys(slot, to)
        self.end_move(slot, to)

    @contextmanager
    def without_slot(self, slot: int) -> Generator[None]:
        """Let nobody have a slot for a while: all who are asked for it say CLUSTERDOWN."""
        masters, had_it = self._masters(), self.master_of(slot)
        for server in masters:
            server.ask("CLUSTER", "DELSLOTS", slot)
        try:
            yield
        finally:
            for server in masters:
                server.ask("CLUSTER", "SETSLOT", slot, "NODE", id_of(had_it.port))
            self._wait_until_whole()

    def kill_master(self, slot: int) -> PrivateRedis:
        """Kill the server that has a slot, and return it; the others look for a replica that takes over."""
        killed = self.master_of(slot)
        give_up_after(QUICKLY, self._ports())
        killed.kill()
        return killed

    def wait_until_replaced(self, killed: PrivateRedis) -> None:
        """Return when a replica has taken over from a master that was killed, and all others know."""

        def taken_over(port: int) -> bool:
            return all(shard.ports[0] != killed.port for shard in shards_of(port))

        wait_until(lambda: all(map(taken_over, self._ports())), "no replica takes over")
        self._wait_until_whole()

    def join(self, killed: PrivateRedis) -> None:
        """Start a server that was killed, and return when it follows who took over, and all others know."""
        give_up_after(QUICKLY, self._ports())
        killed.start()
        self._wait_until_whole()

    def __enter__(self) -> Self:
        with ExitStack() as undoing:
            undoing.callback(self.close)
            for server in self.servers:
                server.start()
            form([server.port for server in self.servers])
            undoing.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill all that run, and remove their data."""
        for server in self.servers:
            server.close()

    def _wait_until_whole(self) -> None:
        ports = self._ports()
        wait_until(lambda: all(is_whole(port, len(ports)) for port in ports), "the Cluster is not whole")
        give_up_after(NEVER, ports)

    def _master(self) -> PrivateRedis:
        # replicas hear later of what is new
        return next(server for server in self.servers if server.runs and server.ask("ROLE")[0] == "master")

    def _on(self, port: int) -> PrivateRedis:
        return next(server for server in self.servers if server.port == port)

    def _masters(self) -> list[PrivateRedis]:
        ports = {shard.ports[0] for shard in shards_of(self._master().port)}
        return [server for server in self.servers if server.port in ports]

    def _ports(self) -> list[int]:
        return [server.port for server in self.servers if server.runs]
