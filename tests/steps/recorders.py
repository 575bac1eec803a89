"""The recorder of each store; a store that has none is left out."""

from typing import Final

from tests.steps.postgres_recorder import recorded_postgres
from tests.steps.python_recorder import recorded_memory, recorded_slatedb
from tests.steps.recording import Recorder
from tests.steps.redis_recorder import recorded_redis
from tests.steps.sqlite_recorder import recorded_sqlite

RECORDERS: Final[dict[str, Recorder]] = {
    "memory": recorded_memory,
    "postgres": recorded_postgres,
    "redis": recorded_redis,
    "slatedb": recorded_slatedb,
    "sqlite": recorded_sqlite,
}
