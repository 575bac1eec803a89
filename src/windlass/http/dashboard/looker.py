"""Who looks at a page, as far as what it shows depends on that."""

from dataclasses import dataclass
from typing import Final

from windlass.api.operations import OPERATIONS
from windlass.api.roles import Role
from windlass.http.auth import Identity

_ROLES: Final = {operation.name: operation.roles for operation in OPERATIONS}


@dataclass(frozen=True, slots=True)
class Looker:
    """What somebody may do and see; all who are alike in that see the same."""

    roles: frozenset[Role]
    queues: frozenset[str] | None
    """The queues that they are limited to; None for all."""

    def may(self, operation: str) -> bool:
        """Whether they may call an operation of the API, so that a page offers it."""
        return Role.ADMIN in self.roles or not self.roles.isdisjoint(_ROLES[operation])


NOBODY: Final = Looker(frozenset(), frozenset())
"""Who reads a page that tells nothing of the store."""


def looker_of(identity: Identity) -> Looker:
    """Return who looks."""
    return Looker(identity.roles, identity.queues)
