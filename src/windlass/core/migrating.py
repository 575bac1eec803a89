"""What is known of a store's schema, and how it is brought up."""

from dataclasses import dataclass
from typing import Protocol

from windlass.core.errors import InvalidValue, SchemaTooNew


@dataclass(frozen=True, slots=True)
class Standing:
    """Where the schema of a store stands: `found` is its version, None without one; this release works with `known`.

    `pending` are the numbers of the migrations that are to come, in order. A making that was killed counts as none, and
    its `pending` begin where it stopped.
    """

    place: str
    found: int | None
    known: int
    pending: tuple[int, ...]

    def check_not_newer(self) -> None:
        """Raise `SchemaTooNew` when a newer release has been here."""
        if self.found is not None and self.found > self.known:
            raise SchemaTooNew(self.place, self.found, self.known)


class Migrator(Protocol):
    """Brings the schema of one store up; it makes no job, claims none, and opens nothing that it does not close."""

    async def look(self) -> Standing:
        """Return where the schema stands; nothing is changed."""
        ...

    async def apply(self) -> Standing:
        """Bring the schema up and return where it stood before.

        One that is killed goes on where it stopped; of many at once one works and the others wait for it. Raises
        `SchemaTooNew` when it is newer.
        """
        ...

    def script(self, since: int) -> str:
        """Return the SQL that brings a schema of version `since`, 0 for none, up by hand."""
        ...


def check_known(version: int, known: int) -> None:
    """Refuse a version of the schema that this release does not know."""
    if not 0 <= version <= known:
        message = f"this release knows the versions 0 (no schema) to {known} of the schema, not {version}"
        raise InvalidValue(message)
