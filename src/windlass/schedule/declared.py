"""Schedules that code declares."""

from collections.abc import Mapping
from dataclasses import dataclass

from windlass.client.prepare import Preparer
from windlass.client.wanted import Terms, Wanted, wanted
from windlass.codec import JSON, Encoded
from windlass.core.errors import EncodeError, InvalidValue
from windlass.core.job import NewJob
from windlass.handlers.arguments import JsonArguments
from windlass.handlers.registered import Registered


@dataclass(frozen=True, slots=True)
class Declared:
    """A schedule that stands above a handler: when that runs by itself, and with which arguments."""

    id: str
    terms: Terms
    registered: Registered
    arguments: JsonArguments
    args: Mapping[str, object]

    def payload(self) -> bytes:
        """Return the arguments as JSON; raises `InvalidValue` or `EncodeError` when the handler does not take them."""
        try:
            return self.arguments.encode((), self.args)
        except EncodeError:
            # a TypeError too, which says what to do by itself
            raise
        except TypeError as error:
            message = f"schedule {self.id!r} cannot call its handler, {error}: args={{...}} has its arguments by name"
            raise InvalidValue(message) from error

    def wanted(self, preparer: Preparer) -> Wanted:
        """Return what is to be written when a server starts; what the handler leaves open is as the settings say.

        Raises `InvalidValue`, `EncodeError` or `PayloadTooLarge` for arguments that no job of the handler can have.
        """
        handler = self.registered
        job = NewJob(
            handler.queue,
            Encoded(self.payload(), JSON.name),
            kind=handler.kind,
            priority=handler.priority,
            max_attempts=handler.max_attempts,
            headers=self.arguments.headers,
        )
        return wanted(self.id, self.terms, job, preparer)
