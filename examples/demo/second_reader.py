"""What the store holds, read by plain SQL and by nothing of Windlass: the store cannot speak for itself here."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple


class Row(NamedTuple):
    """A job as it stands: `delivery` is the number of its last claim."""

    state: str
    delivery: int


class Rescue(NamedTuple):
    """A claim that ended by its lease, and whose it was."""

    job: str
    delivery: int
    worker: str


class Contents(NamedTuple):
    jobs: dict[str, Row]
    rescues: list[Rescue]


def read(database: Path) -> Contents:
    """Return what is in the file; for when everybody else has closed it."""
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        jobs = connection.execute("select id, state, delivery from windlass_job").fetchall()
        rescues = connection.execute(
            "select job.id, ended.delivery, ended.worker from windlass_delivery as ended"
            " join windlass_job as job using (seq) where ended.outcome = 'rescued'"
        ).fetchall()
    return Contents({id: Row(state, delivery) for id, state, delivery in jobs}, [Rescue(*row) for row in rescues])
