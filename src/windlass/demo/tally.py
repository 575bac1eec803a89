"""What the ledger says so far, server by server: for the story and for those who watch it."""

from collections import defaultdict
from collections.abc import Iterable

from windlass.demo.ledger import Claim, Event, What


class Tally:
    def __init__(self) -> None:
        self.deaths: list[Event] = []
        """Servers that the poison took along."""
        self.runners: dict[str, list[str]] = {}
        """The servers that started a job, in order."""
        self._accepted: defaultdict[str, set[Claim]] = defaultdict(set)
        self._running: defaultdict[str, dict[Claim, str]] = defaultdict(dict)

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            self._add(event)

    def running(self, worker: str) -> dict[Claim, str]:
        """Return what has begun in a server and not ended there, each with the kind of the job."""
        return self._running[worker]

    def accepted(self, worker: str) -> set[Claim]:
        """Return what has succeeded in a server, by its own word."""
        return self._accepted[worker]

    def _add(self, event: Event) -> None:
        match event.what:
            case What.STARTED:
                self._running[event.worker][event.claim] = event.note
                self.runners.setdefault(event.job, []).append(event.worker)
            case What.RETURNED | What.RAISED:
                self._running[event.worker].pop(event.claim, None)
            case What.ACCEPTED:
                self._accepted[event.worker].add(event.claim)
            case What.POISONED:
                self.deaths.append(event)
            case _:
                pass
