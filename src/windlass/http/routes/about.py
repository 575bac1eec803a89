"""Description of the serving process."""

from collections.abc import Sequence
from typing import Any, Final

from windlass.api import calls, operations
from windlass.api.about import About
from windlass.api.roles import Role
from windlass.http.call import Call, Handled
from windlass.version import VERSION


async def about(call: Call[calls.Nothing]) -> About:
    """Tell what serves here, and who asks."""
    identity = call.identity
    return About(
        version=VERSION,
        serving=call.shared.id,
        atomic_across_queues=call.store.features.atomic_across_queues,
        name=identity.name,
        roles=[role for role in Role if role in identity.roles],
        queues=None if identity.queues is None else sorted(identity.queues),
    )


HANDLED: Final[Sequence[Handled[Any, Any]]] = (Handled(operations.ABOUT, about),)
