"""Commands of a store over HTTP that need more than the operation that carries them."""

from typing import Final

from windlass.api import operations
from windlass.api.calls import MOST_JOBS
from windlass.api.claims import claim_asked, claims_of
from windlass.core.commands import ClaimJobs, SetPaused
from windlass.core.job import Claim
from windlass.core.store_calls import table_of
from windlass.stores.http.operation_client import OperationClient


async def claim(client: OperationClient, command: ClaimJobs) -> list[Claim]:
    """Claim jobs, as many as one request may."""
    request = command.request
    if request.limit < 1 or not request.queues:
        return []
    wanted = claim_asked(request._replace(limit=min(request.limit, MOST_JOBS)))
    return claims_of(await client.change(operations.CLAIM, wanted))


async def set_paused(client: OperationClient, command: SetPaused) -> None:
    """Pause or resume a queue: two operations carry it."""
    await client.carry(operations.PAUSE if command.paused else operations.RESUME, command)


COMMANDS: Final = table_of(SetPaused.by_coroutine(set_paused))
"""The function that executes each command for which there is no single operation."""
