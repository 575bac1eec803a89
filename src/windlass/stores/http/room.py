"""What one process has open on a server: connections, and whoever works through them."""

import os

from windlass.core.clock import Rng
from windlass.core.topics import Hub
from windlass.kit.request_names import RequestNames
from windlass.stores.http.batches import Batches
from windlass.stores.http.listener import Listener
from windlass.stores.http.operation_client import OperationClient, problem_told
from windlass.stores.http.options import Options
from windlass.stores.http.runner import Runner


class Room:
    """Everything that one store has open in one process."""

    def __init__(self, options: Options, rng: Rng, hub: Hub) -> None:
        """Open nothing yet."""
        self.pid = os.getpid()
        self.runner = Runner(options, problem_told)
        self.client = OperationClient(self.runner, RequestNames(rng).new)
        self.batches = Batches(self.client, patience=options.timeout)
        self.hub = hub
        self.listener = Listener(options, hub, problem_told)

    async def close(self) -> None:
        """Finish what was handed over and let go of every connection."""
        await self.batches.close()
        await self.listener.close()
        await self.runner.close()

    def abandon(self) -> None:
        """Let go of what belongs to the parent, in a forked process."""
        self.listener.abandon()
        self.runner.abandon()
