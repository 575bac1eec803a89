"""A few connections to one database that the calls of one event loop share."""

from windlass.kit import connections as kit
from windlass.stores.postgres.faults import Fault, kind, translate
from windlass.stores.postgres.options import Options
from windlass.stores.postgres.session import Session, open_session


class Connections(kit.Connections[Session]):
    """At most `options.connections` sessions of the database of `options`."""

    def __init__(self, options: Options) -> None:
        """Open nothing yet."""
        super().__init__(
            lambda timeout: open_session(options, timeout=timeout),
            most=options.connections,
            where=options.where,
            is_lost=lambda error: kind(error) in (Fault.LOST, Fault.STALE),
            translate=translate,
        )
