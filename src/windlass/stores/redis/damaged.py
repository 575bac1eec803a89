"""Damaged jobs that claims and services pass, again and again: the log names each once."""

import logging
from collections.abc import Iterable
from typing import Final, TypeAlias

logger = logging.getLogger("windlass.redis")

CLAIM: Final = "job %s cannot be claimed, and stays in line behind those that can: %s"
RESCUE: Final = "the claim on job %s cannot be rescued: %s"
PRUNE: Final = "job %s cannot be pruned, and stays: %s"
MOST_TOLD: Final = 10_000
Damage: TypeAlias = tuple[str, str]
"""The id of a job, and what is said of it."""


class Told:
    """What the log of one store has said of damaged jobs."""

    def __init__(self) -> None:
        """Begin with nothing said."""
        self._told: dict[tuple[str, str], None] = {}

    def tell(self, what: str, damaged: Iterable[Damage]) -> None:
        """Log `what` of each job, if that was not done before."""
        for job_id, why in damaged:
            if (job_id, what) not in self._told:
                self._told[job_id, what] = None
                logger.error(what, job_id, why)
        while len(self._told) > MOST_TOLD:
            del self._told[next(iter(self._told))]
