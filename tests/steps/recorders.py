"""The recorder of each store; a store that has none is left out."""

from typing import Final

from tests.steps.postgres_recorder import recorded_postgres
from tests.steps.python_recorder import recorded_memory, recorded_slatedb
from tests.steps.recording import Recorder

RECORDERS: Final[dict[str, Recorder]] = {
    "memory": recorded_memory,
    "postgres": recorded_postgres,
    "slatedb": recorded_slatedb,
}
