"""Hears of other processes' news, through a stream of events that does nothing else."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote_plus, urlencode

from windlass.api.operations import NEWS
from windlass.core.errors import WindlassError
from windlass.core.topics import SCHEDULES, Hub, Topic
from windlass.kit.listening import Listening
from windlass.stores.http.events import Events
from windlass.stores.http.faults import Fault, ReadProblem, Refused, refusal, translate
from windlass.stores.http.headers import usual_headers
from windlass.stores.http.options import Options
from windlass.stores.http.wire import Wire, open_wire

logger = logging.getLogger("windlass.http")

SILENT_FOR: Final = 40.0
"""After how many seconds without a word a stream is lost: the serving side says at least that it is there each 15."""
REOPEN_AFTER: Final = 0.1
"""Seconds that a stream is kept at least, while new topics are gathered for the next one."""
REFUSED_FOR, LONGEST_REFUSED = 10.0, 60.0
"""Seconds until a server that refuses the stream is asked again: whoever asks often with a wrong token is shut out."""
MOST_TOPICS: Final = 1000
LONGEST_QUERY: Final = 30_000
"""Characters of topics that a stream is asked for; who listens to one that has no room looks each second."""


class Listener(Listening):
    """Rings `hub` at news on the topics that somebody listens to."""

    answer_within = 5.0

    def __init__(self, options: Options, hub: Hub, read_problem: ReadProblem) -> None:
        """Open nothing yet."""
        super().__init__(hub, where=options.where, logger=logger)
        self._options = options
        self._read_problem = read_problem
        self._headers = usual_headers(options) + b"accept: text/event-stream\r\n"
        self._wire: Wire | None = None
        self._carried: frozenset[Topic] = frozenset()
        """What the stream tells of."""
        self._full = False
        self._outdated = False
        self._opened_at = 0.0
        self._reopening: asyncio.TimerHandle | None = None

    @property
    def connected(self) -> bool:
        """Whether news is heard at once."""
        return self._wire is not None

    def start(self) -> None:
        """Begin to hear, also what the stream does not tell of yet."""
        super().start()
        if self._wire is not None and self._reopening is None and self._lacks():
            loop = asyncio.get_running_loop()
            self._reopening = loop.call_at(self._opened_at + REOPEN_AFTER, self._reopen)

    def _reopen(self) -> None:
        self._reopening = None
        if self._wire is not None:
            self._outdated = True
            self._wire.terminate()

    def _lacks(self) -> bool:
        """Whether somebody listens to what the stream does not tell of, and another one would."""
        return not self._full and not self._carried.issuperset(self._hub.topics())

    def _ring_unheard(self) -> None:
        self._hub.ring_all(but=self._carried if self.connected else ())

    def _let_go(self) -> None:
        if self._wire is not None:
            self._wire.abandon()

    async def _listen(self) -> None:
        while True:
            self._outdated = False
            try:
                await self._hear_stream()
            except Refused as refused:
                wanted = max(refused.retry_after, REFUSED_FOR if refused.fault is Fault.FINAL else 0.0)
                self._pause = max(self._pause, min(wanted, LONGEST_REFUSED))
                raise
            except ConnectionError:
                if not self._outdated:
                    raise

    async def _hear_stream(self) -> None:
        """Hear one stream until it is lost, which raises."""
        async with asyncio.timeout(self.answer_within):
            wire = await open_wire(self._options)
        try:
            await self._subscribe(wire)
            await self._stay(wire)
        finally:
            self._wire = None
            wire.terminate()

    async def _subscribe(self, wire: Wire) -> None:
        topics = sorted(self._hub.topics())
        # a stream is about something: whoever listened has stopped meanwhile
        carried = fitting(topics) or [SCHEDULES]
        target = f"{self._options.prefix}{NEWS.path}?{urlencode([('topic', topic) for topic in carried])}"
        async with asyncio.timeout(self.answer_within):
            reply = await wire.begin(target.encode("ascii"), self._headers)
        refused = refusal(reply, self._options, self._read_problem)
        if refused is not None:
            raise refused
        self._carried = frozenset(carried)
        self._full = len(carried) < len(topics)
        self._opened_at = asyncio.get_running_loop().time()
        self._wire = wire
        self._heard_again()
        # whoever began to listen while the stream was opened
        self.start()

    async def _stay(self, wire: Wire) -> None:
        events = Events()
        while True:
            async with asyncio.timeout(SILENT_FOR):
                heard = await wire.hear()
            for topics in events.read(heard):
                if topics is None:
                    self._hub.ring_all()
                else:
                    self._hub.ring(topics)

    def _meaning(self, error: Exception) -> WindlassError:
        return translate(error, self._options.where)


def fitting(topics: Sequence[Topic]) -> Sequence[Topic]:
    """Return as many topics, of the first, as one stream can be asked for."""
    length = 0
    for number, topic in enumerate(topics[:MOST_TOPICS]):
        length += len("topic=&") + len(quote_plus(topic))
        if length > LONGEST_QUERY:
            return topics[:number]
    return topics[:MOST_TOPICS]
