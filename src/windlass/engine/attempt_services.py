"""Attempt services: the client, the notes and the retention that all attempts of one server share."""

import asyncio
from datetime import timedelta

from windlass.client.client import Client
from windlass.core.retention import Retention
from windlass.engine.attempt import Attempt
from windlass.engine.claim_transaction import SettlingTransaction
from windlass.engine.kept_log import DEFAULT_LEAST
from windlass.engine.notes import Notes
from windlass.engine.transaction import ClaimTransaction


class AttemptServices:
    """The client and the notes of a server, for the contexts of its attempts."""

    def __init__(
        self,
        client: Client,
        notes: Notes,
        retention: Retention | None = None,
        *,
        log_from: int = DEFAULT_LEAST,
    ) -> None:
        """Serve attempts through `client`, from the running event loop; `retention` is the client's by default.

        `log_from` is the level from which on the standard log is kept with jobs.
        """
        self.log_from = log_from
        self.client = client
        self._retention = retention
        self.notes = notes
        self._loop = asyncio.get_running_loop()

    def transaction(self, attempt: Attempt, connection: object) -> ClaimTransaction:
        """Return the transaction that settles the claim of `attempt`."""
        warn_after = timedelta(seconds=attempt.lease / 3)
        return SettlingTransaction(
            self.client,
            attempt,
            connection,
            loop=self._loop,
            warn_after=warn_after,
            retention=self._retention,
        )
