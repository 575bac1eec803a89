"""How the fields of a job are damaged in a Postgres database."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import psycopg
from psycopg import errors

from tests.damage.table import DamagedStore, Damager
from tests.postgres.cluster import cluster, schema_of
from windlass.core.job import Job
from windlass.core.store import Store

INTEGERS: Final = ("priority", "attempt", "max_attempts", "delivery", "log_lines")
TIMES: Final = ("created_at", "run_at", "claimed_at", "lease_expires_at", "finished_at")
BYTES: Final = ("payload", "result")
UUIDS: Final = ("id", "parent_id", "token")
TEXTS: Final = (
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
    "schedule_id",
    "limit_key",
    "hold",
    "hold_until",
)
REFUSALS: Final = (
    psycopg.DataError,
    psycopg.IntegrityError,
    errors.DatatypeMismatch,
    errors.GeneratedAlways,
    errors.ProgramLimitExceeded,
)
OF_ANY: Final = {"wrong type": "'text'", "empty": "''", "missing": "null"}
OF_INTEGERS: Final = {"huge": "2147483647", "out of range": "-2147483648"}
OF_NUMBERS: Final = {"huge": "9223372036854775807 - seq", "out of range": "-9223372036854775807 + seq"}
OF_TIMES: Final = {"huge": "'infinity'", "out of range": "'4713-01-01 BC'"}
OF_BYTES: Final = {"wrong type": "5", "huge": "decode(repeat('00', 1000000), 'hex')"}
OF_TEXTS: Final = {
    "wrong type": "'[5]'",
    "huge": "(select string_agg(md5(part::text), '') from generate_series(seq, seq + 30000) as part)",
    "not UTF-8": "convert_from('\\xff', 'UTF8')",
}


@asynccontextmanager
async def damager(url: str, store: Store) -> AsyncGenerator[Damager]:
    """Write through a connection of our own, as an operator or another program would."""
    del store

    async def damage(job: Job, field: str, what: str) -> bool | None:
        value = expression(field, what)
        if value is None:
            return None
        update = f"update {schema_of(url)}.windlass_job set {field} = {value} where seq = {job.seq}"
        try:
            cluster().run(update.encode())
        except REFUSALS:
            return False
        return True

    yield damage


def expression(field: str, what: str) -> str | None:
    """Return the SQL of a damaged value."""
    if what in OF_ANY and not (what == "wrong type" and field in (*TEXTS, *BYTES)):
        return OF_ANY[what]
    if field in TEXTS:
        return OF_TEXTS.get(what)
    special = OF_TIMES if field in TIMES else OF_BYTES if field in BYTES else OF_INTEGERS if field in INTEGERS else None
    if special is None:
        return OF_NUMBERS.get(what) if field == "seq" else None
    return special.get(what)


STORE: Final = DamagedStore(
    name="postgres",
    title="Postgres",
    fields=(
        "seq",
        *UUIDS[:1],
        *TEXTS[:2],
        *BYTES[:1],
        *TEXTS[2:],
        *UUIDS[1:],
        *BYTES[1:],
        *INTEGERS,
        *TIMES,
        "cancel_requested",
        "has_followers",
    ),
    needed_by={
        "claim": ("state", "queue"),
        # a queue or kind that no index can hold was written while the job ran, and is refused at its end
        "ack": ("token", "state", "lease_expires_at", "queue", "kind"),
        "nack": ("token", "state", "lease_expires_at", "queue", "kind"),
        "rescue": ("state", "queue", "kind"),
        "promote": ("state", "queue", "run_at"),
        "prune": ("state", "queue", "finished_at"),
        "move": ("state", "queue"),
    },
    damager=damager,
)
