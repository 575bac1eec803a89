"""What the log says of damaged records."""

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, TypeAlias

from windlass.kit.damage import DamageLog

logger = logging.getLogger("windlass.redis")

Damage: TypeAlias = tuple[str, str]
"""The id of a job, and what is damaged."""

_damage: Final = DamageLog(logger)


def log_set_aside(damaged: Iterable[Damage]) -> None:
    """Log each job that was set aside."""
    for job_id, why in damaged:
        logger.error("job %s is damaged and was set aside as dead: %s", job_id, why)


def left_out(what: str) -> Callable[[str], None]:
    """Return what logs, once for each, the reason why one of many records is left out of what is shown."""
    return partial(_damage.log, f"{what} is damaged, and left out: %s")


def counted_as_0(what: str) -> Callable[[str], None]:
    """Return what logs, once for each, which number is counted as 0."""
    return partial(_damage.log, f"{what} is damaged, and counted as 0: %s")
