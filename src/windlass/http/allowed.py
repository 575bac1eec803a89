"""Whether an identity may do what it asks for: by its roles, and by the queues that it is limited to."""

from collections.abc import Collection

from windlass.api.roles import Role
from windlass.http.auth import Identity
from windlass.http.refusal import forbidden


def check_roles(identity: Identity, roles: Collection[Role]) -> None:
    """Refuse an operation that none of the identity's roles may call; an administrator may call each."""
    if Role.ADMIN in identity.roles or not identity.roles.isdisjoint(roles):
        return
    needed = _listed([*roles, Role.ADMIN] if Role.ADMIN not in roles else roles)
    message = (
        f"{identity.name} has the role {_listed(identity.roles)}, and this needs one of {needed}: use another token"
    )
    raise forbidden(message)


def reaches(identity: Identity, queue: str) -> bool:
    """Whether the identity may know of what is in this queue."""
    return identity.queues is None or queue in identity.queues


def check_queues(identity: Identity, queues: Collection[str]) -> None:
    """Refuse an operation on queues of which one is out of reach, in the same words whether it is there or not."""
    for queue in queues:
        if not reaches(identity, queue):
            message = f"{identity.name} is limited to other queues than {queue[:200]}: use another token"
            raise forbidden(message)


def queues_in_reach(identity: Identity, wanted: Collection[str] | None) -> Collection[str] | None:
    """Return the queues that an operation is about: those that are wanted, or all in reach when none are named.

    None means all that there are. One that is out of reach is refused.
    """
    if wanted is None:
        return identity.queues
    check_queues(identity, wanted)
    return wanted


def check_unlimited(identity: Identity) -> None:
    """Refuse an operation that is about no single queue to whoever is limited to some."""
    if identity.queues is not None:
        message = f"{identity.name} is limited to some queues, and this is about all of them: use another token"
        raise forbidden(message)


def _listed(roles: Collection[Role]) -> str:
    return ", ".join(role.value for role in Role if role in roles)
