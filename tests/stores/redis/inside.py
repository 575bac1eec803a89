"""A look inside a store: the connections that it has."""

from windlass.core.store import Store
from windlass.kit.connections import Connections
from windlass.stores.redis.options import Place
from windlass.stores.redis.runner import Runner
from windlass.stores.redis.wire import Wire


def idle_wires(store: Store) -> list[Wire]:
    """Return the connections of a store that nobody uses just now."""
    runner: Runner = vars(store)["_room"].runner
    pools: dict[Place, Connections[Wire]] = vars(runner)["_connections"]
    idle: list[list[Wire]] = [vars(pool)["_idle"] for pool in pools.values()]
    return [wire for wires in idle for wire in wires]
