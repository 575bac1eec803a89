"""How servers become a Cluster, without a program that forms it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tests.redis.asking import Word, ask, wait_until
from tests.redis.starting import QUICK

MASTERS: Final = 3
SLOTS: Final = 16_384
QUICKLY: Final = 1_000
"""After how many milliseconds of silence a server is given up, and within how many all hear the news of all."""
NEVER: Final = 60_000
"""The same while no news is awaited: a machine that stands still for a while must not lose its masters by that."""
CLUSTERED: Final[Mapping[str, str]] = {
    **QUICK,
    "cluster-enabled": "yes",
    "cluster-announce-ip": "127.0.0.1",
    "cluster-node-timeout": str(QUICKLY),
    # a replica takes over whatever it may have missed, and no other master's
    "cluster-replica-validity-factor": "0",
    "cluster-allow-replica-migration": "no",
}
"""The settings of a server that can be part of a Cluster."""


class Shard(NamedTuple):
    """A range of slots, and the ports of those that have it: the master, then its replicas."""

    first: int
    last: int
    ports: tuple[int, ...]


def form(ports: Sequence[int]) -> None:
    """Make a Cluster of the servers on these ports: the first three are masters, replicas of which the others are.

    Returns when each of them answers for all slots, and knows of all others.
    """
    for each, port in enumerate(ports):
        _ask(port, "CLUSTER", "SET-CONFIG-EPOCH", each + 1)
    for each, port in enumerate(ports[:MASTERS]):
        _ask(port, "CLUSTER", "ADDSLOTSRANGE", each * SLOTS // MASTERS, (each + 1) * SLOTS // MASTERS - 1)
    for each, port in enumerate(ports):
        # everybody meets everybody: who is only heard of is met much later
        for other in ports[each + 1 :]:
            _ask(port, "CLUSTER", "MEET", "127.0.0.1", other)
    ids = [id_of(port) for port in ports]
    for each, port in enumerate(ports[MASTERS:]):
        _follow(port, ids[each % MASTERS])
    wait_until(lambda: all(is_whole(port, len(ports)) for port in ports), "the Cluster is not formed")
    give_up_after(NEVER, ports)


def is_whole(port: int, count: int) -> bool:
    """Return whether the server on `port` sees a Cluster of `count` servers that has all slots, and is up to date."""
    whole = "cluster_state:ok" in _ask(port, "CLUSTER", "INFO").splitlines()
    info = _ask(port, "INFO", "replication")
    linked = info["role"] == "master" or info["master_link_status"] == "up"
    shards = shards_of(port)
    slots = sum(shard.last - shard.first + 1 for shard in shards)
    return whole and linked and slots == SLOTS and len({each for shard in shards for each in shard.ports}) == count


def give_up_after(milliseconds: int, ports: Iterable[int]) -> None:
    """Let these servers give up others `QUICKLY` or `NEVER`."""
    for port in ports:
        _ask(port, "CONFIG", "SET", "cluster-node-timeout", milliseconds)


def shards_of(port: int) -> list[Shard]:
    """Return who has which slots, as the server on `port` sees it."""
    found = _ask(port, "CLUSTER", "SLOTS")
    return [Shard(first, last, tuple(place[1] for place in places)) for first, last, *places in found]


def id_of(port: int) -> str:
    """Return what the server on `port` is called in its Cluster."""
    name: str = _ask(port, "CLUSTER", "MYID")
    return name


def _follow(port: int, master: str) -> None:
    def knows_it() -> bool:
        # refused until it has heard of that master
        return bool(_ask(port, "CLUSTER", "REPLICATE", master))

    wait_until(knows_it, "a replica does not find its master")


def _ask(port: int, name: str, *words: Word) -> Any:  # noqa: ANN401 - each command has its own
    return ask(f"redis://127.0.0.1:{port}/0", name, *words)
