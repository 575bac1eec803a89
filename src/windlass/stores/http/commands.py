"""Commands of a store over HTTP that need more than the operation that carries them."""

from typing import Final

from windlass.api import operations
from windlass.api.calls import MOST_JOBS
from windlass.api.claims import claim_asked, claims_of
from windlass.core.commands import ClaimJobs, SetQueueSettings
from windlass.core.errors import InvalidValue
from windlass.core.requests import Claimed
from windlass.core.store_calls import table_of
from windlass.stores.http.operation_client import OperationClient


async def claim(client: OperationClient, command: ClaimJobs) -> Claimed:
    """Claim jobs, as many as one request may."""
    request = command.request
    if request.limit < 1 or not request.queues:
        return Claimed([])
    wanted = claim_asked(request._replace(limit=min(request.limit, MOST_JOBS)))
    return claims_of(await client.change(operations.CLAIM, wanted))


async def set_queue_settings(client: OperationClient, command: SetQueueSettings) -> None:
    """Pause or resume a queue, which two operations carry; no other setting has an operation."""
    if command.layer != "override" or command.settings.paused is None:
        message = f"over HTTP a queue can be paused and resumed, not: {command.settings!r} as {command.layer}"
        raise InvalidValue(message)
    await client.carry(operations.PAUSE if command.settings.paused else operations.RESUME, command)


COMMANDS: Final = table_of(SetQueueSettings.by_coroutine(set_queue_settings))
"""The function that executes each command for which there is no single operation."""
