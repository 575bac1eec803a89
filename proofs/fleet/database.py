"""What is done to the database of a fleet: sessions are ended, it is killed, stopped, and started again."""

import random
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from itertools import cycle
from typing import Any, Final, Protocol, TypeVar

import psycopg
from redis.exceptions import RedisError

from proofs.children import eventually
from proofs.readers.postgres import APPLICATION
from proofs.readers.redis import RedisReader, connect
from tests.postgres.private import PrivateCluster
from tests.postgres.private_pgbouncer import PrivatePgBouncer
from tests.redis.forming import QUICKLY, give_up_after
from tests.redis.private import PrivateRedis
from tests.redis.private_cluster import PrivateCluster as RedisCluster

T = TypeVar("T")
IDLE: Final = "idle"
END_ONE: Final = """
select pg_terminate_backend(pid), pid, state from (
    select pid, state from pg_stat_activity where application_name = %s and (state <> 'idle' or not %s)
    order by random() limit 1
) victim
"""
STANDSTILL: Final = 0.05
"""Seconds that a Redis stands still, so that requests wait for it."""
HOME: Final = "{windlass}|"
"""What all keys begin with that belong to no queue, and all others where queues are not spread."""
PAUSED_AT_MOST: Final = 1_000
"""Milliseconds for which requests are held back."""


class Database(Protocol):
    """A server that a campaign has for itself."""

    @property
    def url(self) -> str: ...

    @property
    def pid(self) -> int: ...

    @property
    def at_work(self) -> str:
        """What a session is that was not idle when it was ended."""
        ...

    def cut(self, *, busy: bool) -> str | None:
        """End a session of Windlass, with `busy` one that is likely at work; return what it did, if one was ended."""
        ...

    def kill(self) -> None: ...

    def stop(self) -> None: ...

    def start(self) -> None:
        """Return when it answers again."""
        ...


class PostgresDatabase:
    """A Postgres."""

    def __init__(self, cluster: PrivateCluster) -> None:
        self._cluster = cluster
        self.at_work: Final = "inside a statement or a transaction"
        self.url: Final = cluster.url

    @property
    def pid(self) -> int:
        return self._cluster.pid

    def cut(self, *, busy: bool) -> str | None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            for ended, pid, state in connection.execute(END_ONE, [APPLICATION, busy]).fetchall():
                if ended and eventually(lambda: not _is_there(connection, pid), 5):  # noqa: B023 - asked at once
                    return str(state)
        return None

    def kill(self) -> None:
        self._cluster.kill()

    def stop(self) -> None:
        self._cluster.stop("immediate")

    def start(self) -> None:
        self._cluster.start()


class PgBouncerDatabase(PostgresDatabase):
    """A Postgres behind a PgBouncer: sessions are ended behind it, and what is stopped in a hurry is the pool."""

    def __init__(self, cluster: PrivateCluster, pool: PrivatePgBouncer) -> None:
        super().__init__(cluster)
        self._pool = pool

    @property
    def pid(self) -> int:
        """A number that is another one when one of the two was started anew."""
        return super().pid + self._pool.pid

    def stop(self) -> None:
        self._pool.kill()

    def start(self) -> None:
        if not self._pool.runs:
            self._pool.start()
        else:
            super().start()


def _is_there(connection: psycopg.Connection, pid: int) -> bool:
    return bool(connection.execute("select 1 from pg_stat_activity where pid = %s", [pid]).fetchall())


class RedisDatabase:
    """A Redis."""

    def __init__(self, private: PrivateRedis) -> None:
        self.private: Final = private
        self.at_work: Final = "with a request that was read, or a reply that was not sent"
        self._busy_cuts = 0
        self.url: Final = private.url

    @property
    def pid(self) -> int:
        return self.private.pid

    def cut(self, *, busy: bool) -> str | None:
        try:
            connections = RedisReader(self.url).connections()
            if not connections:
                return None
            with closing(connect(self.url)) as client, closing(connect(self.url)) as other:
                if not busy:
                    return _end(client, random.choice(connections)["id"])
                self._busy_cuts += 1
                if self._busy_cuts % 2:
                    return _end_before_it_is_done(client)
                often_used = _at_work(_after_a_standstill(other, client.client_list))
                victim = random.choice(often_used or connections)["id"]
                return _after_a_standstill(other, lambda: _end(client, victim))
        except RedisError:
            return None

    def kill(self) -> None:
        self.private.kill()

    def stop(self) -> None:
        self.private.stop()

    def start(self) -> None:
        self.private.start()


class RedisClusterDatabase:
    """Three masters of a Redis Cluster, of which one after the other is killed; while one is gone, none serves."""

    def __init__(self, cluster: RedisCluster, *, spread: bool) -> None:
        self._cluster = cluster
        self._busy = cluster.servers if spread else [cluster.master_of(cluster.slot_of(HOME))]
        self._turns = cycle(cluster.servers)
        self._killed: PrivateRedis | None = None
        self._each = {server.port: RedisDatabase(server) for server in cluster.servers}
        self.at_work: Final = self._each[cluster.servers[0].port].at_work
        self.url: Final = f"{cluster.url}?spread=queues" if spread else cluster.url

    @property
    def pid(self) -> int:
        """A number that is another one when one of them was started anew."""
        return sum(server.pid for server in self._cluster.servers)

    def cut(self, *, busy: bool) -> str | None:
        server = random.choice(self._busy if busy else self._cluster.servers)
        return self._each[server.port].cut(busy=busy)

    def kill(self) -> None:
        self._killed = next(self._turns)
        give_up_after(QUICKLY, [server.port for server in self._cluster.servers])
        self._killed.kill()

    def stop(self) -> None:
        self._killed = next(self._turns)
        self._killed.stop()

    def start(self) -> None:
        assert self._killed is not None
        self._cluster.join(self._killed)


def _end_before_it_is_done(client: Any) -> str | None:  # noqa: ANN401
    """End a connection whose request was read and is held back."""
    client.execute_command("CLIENT", "PAUSE", PAUSED_AT_MOST, "WRITE")
    try:
        eventually(lambda: bool(_at_work(client.client_list())), PAUSED_AT_MOST / 2_000)
        held_back = _at_work(client.client_list())
        return _end(client, random.choice(held_back)["id"]) if held_back else None
    finally:
        client.execute_command("CLIENT", "UNPAUSE")


def _after_a_standstill(other: Any, do: Callable[[], T]) -> T:  # noqa: ANN401
    """Ask for something right after the server has stood still for a moment.

    Whoever has asked for something meanwhile is then answered in the same turn of the server, before this, and its
    reply is not sent yet. Who is cut off at that moment has what it wanted done, and is not told.
    """
    still = other.connection_pool.get_connection()
    still.send_command("DEBUG", "SLEEP", STANDSTILL)
    time.sleep(STANDSTILL * 0.8)
    answer = do()
    still.read_response()
    other.connection_pool.release(still)
    return answer


def _at_work(connections: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return those of Windlass that were asking for something."""
    return [each for each in connections if each["name"] == APPLICATION and not _is_idle(each)]


def _is_idle(told: Mapping[str, str]) -> bool:
    return told["qbuf"] == told["obl"] == told["oll"] == "0" and "b" not in told["flags"]


def _end(client: Any, victim: str) -> str | None:  # noqa: ANN401
    """Look at a connection and end it in one step."""
    together = client.pipeline(transaction=False)
    together.execute_command("CLIENT", "LIST", "ID", victim)
    together.execute_command("CLIENT", "KILL", "ID", victim)
    seen, ended = together.execute()
    if not ended:
        return None
    told = dict(word.split("=", 1) for word in seen.decode().split())
    return IDLE if _is_idle(told) else f"asked for {told['cmd']}"
