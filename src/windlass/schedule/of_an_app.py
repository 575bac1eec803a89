"""What a server does for schedules."""

from collections.abc import Sequence

from windlass.engine.served import Around
from windlass.engine.service import Service
from windlass.schedule.declared import Declared
from windlass.schedule.declared_here import DeclaredHere
from windlass.schedule.declarer import Declarer
from windlass.schedule.scheduler import Scheduler


def of_an_app(declared: Sequence[Declared], around: Around) -> Service:
    """Return what writes the schedules that an app declares, and fires them unless whoever serves the store does."""
    if around.client.store.features.served:
        return Declarer(around.client, declared, around)
    return Scheduler(around.client, DeclaredHere(around.client, declared, around), around)
