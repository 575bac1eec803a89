"""Who is to be woken by what."""

import threading
from collections.abc import Callable, Collection, Iterable
from typing import Final, NewType

Topic = NewType("Topic", str)

ENDS: Final = Topic("ends")
"""A job reached one of its ends."""
FLAGS: Final = Topic("flags")
"""A running job was asked to stop."""
PAUSES: Final = Topic("pauses")
"""A queue was paused."""
SCHEDULES: Final = Topic("schedules")
"""A schedule was put, removed, paused or resumed."""
OWNER: Final = Topic("owner")
"""Another process may have taken the store over."""


def queue_topic(queue: str) -> Topic:
    """Name the news that `queue` may have a job to claim, or one that comes due."""
    return Topic(f"queue:{queue}")


def lock_topic(name: str) -> Topic:
    """Name the news that the lock `name` may be free."""
    return Topic(f"lock:{name}")


class Hub:
    """Calls whoever listens to a topic; may be rung from any thread, and never waits for a listener."""

    def __init__(self) -> None:
        """Begin with nobody listening."""
        self._listeners: dict[Topic, list[Callable[[], None]]] = {}
        self._guard = threading.Lock()

    def listen(self, topics: Collection[Topic], ring: Callable[[], None]) -> Callable[[], None]:
        """Call `ring` at every news on `topics`, in the thread of whoever has them; return how to stop it."""
        wanted = tuple(topics)
        with self._guard:
            for topic in wanted:
                self._listeners.setdefault(topic, []).append(ring)

        def stop() -> None:
            with self._guard:
                for topic in wanted:
                    self._forget(topic, ring)

        return stop

    def ring(self, topics: Iterable[Topic]) -> None:
        """Tell everybody who listens to one of `topics`, once each."""
        if not self._listeners:
            return
        with self._guard:
            rings = {ring for topic in topics for ring in self._listeners.get(topic, ())}
        for ring in rings:
            ring()

    def ring_all(self, *, but: Collection[Topic] = ()) -> None:
        """Tell everybody, or all who listen to something else than `but`: it is not known what changed."""
        self.ring([topic for topic in self.topics() if topic not in but])

    @property
    def silent(self) -> bool:
        """Whether nobody listens."""
        return not self._listeners

    def topics(self) -> list[Topic]:
        """Return what somebody listens to."""
        with self._guard:
            return list(self._listeners)

    def _forget(self, topic: Topic, ring: Callable[[], None]) -> None:
        rings = self._listeners.get(topic)
        if rings and ring in rings:
            rings.remove(ring)
            if not rings:
                del self._listeners[topic]
