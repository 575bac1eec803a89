"""How the fields of a job are damaged in a SQLite file."""

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from typing import Final

from tests.damage.table import DamagedStore, Damager
from windlass.core.job import Job
from windlass.core.store import Store

INTEGERS: Final = (
    "seq",
    "priority",
    "attempt",
    "max_attempts",
    "delivery",
    "created_at",
    "run_at",
    "claimed_at",
    "lease_expires_at",
    "finished_at",
    "cancel_requested",
    "log_lines",
)
BYTES: Final = ("payload", "result")
TEXTS: Final = (
    "id",
    "queue",
    "kind",
    "codec",
    "headers",
    "tenant",
    "state",
    "worker",
    "last_error",
    "result_codec",
    "progress",
    "unique_key",
    "parent_id",
    "schedule_id",
    "limit_key",
    "token",
    "hold",
    "hold_until",
)
OF_ANY: Final = {"empty": "''", "not UTF-8": "cast(x'ff' as text)", "missing": "null"}
OF_INTEGERS: Final = {
    "wrong type": "'text'",
    "huge": "9223372036854775807",
    "out of range": "-9223372036854775807 + seq",
}
OF_BYTES: Final = {"wrong type": "'text'", "empty": "x''", "huge": "zeroblob(1000000)"}
OF_TEXTS: Final = {"wrong type": "x'00'", "huge": "seq || hex(zeroblob(500000))"}


@asynccontextmanager
async def damager(url: str, store: Store) -> AsyncGenerator[Damager]:
    """Write through a connection of our own, as an operator or another program would."""
    del store
    with closing(sqlite3.connect(url.removeprefix("sqlite://"), isolation_level=None)) as connection:

        async def damage(job: Job, field: str, what: str) -> bool | None:
            value = expression(field, what)
            if value is None:
                return None
            try:
                connection.execute(f"update windlass_job set {field} = {value} where seq = ?", (job.seq,))
            except sqlite3.IntegrityError:
                return False
            return True

        yield damage


def expression(field: str, what: str) -> str | None:
    """Return the SQL of a damaged value."""
    special = OF_INTEGERS if field in INTEGERS else OF_BYTES if field in BYTES else OF_TEXTS
    return special.get(what, None if what == "not UTF-8" and field not in TEXTS else OF_ANY.get(what))


STORE: Final = DamagedStore(
    name="sqlite",
    title="SQLite",
    fields=(*INTEGERS[:1], *TEXTS[:3], *BYTES[:1], *TEXTS[3:], *BYTES[1:], *INTEGERS[1:]),
    needed_by={
        "claim": ("state", "queue"),
        "ack": ("id", "token", "state"),
        "nack": ("id", "token", "state", "unique_key", "hold", "hold_until"),
        "rescue": ("state", "lease_expires_at"),
        "promote": ("state", "queue", "run_at"),
        "prune": ("state", "queue", "finished_at"),
        "get": ("id",),
        "why": ("id",),
        "dashboard": ("id",),
        "move": ("state", "queue"),
    },
    damager=damager,
)
