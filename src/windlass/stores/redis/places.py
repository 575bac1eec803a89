"""Which server has the keys of a store: the one of the URL, the one that Sentinels name, or a node of the Cluster."""

import asyncio
import logging
from typing import Final, Protocol

from windlass.core.errors import StoreReadOnly, StoreUnavailable
from windlass.stores.redis.faults import is_elsewhere, is_of_login
from windlass.stores.redis.line import Refused
from windlass.stores.redis.options import Options, Place
from windlass.stores.redis.wire import Wire, open_wire

logger = logging.getLogger("windlass.redis")

_ONE_SENTINEL: Final = 1.0
_SAME_HOST: Final = ("", "?")
"""What stands for the host of another node where the one that was asked does not know it."""
_MASTER: Final = b"\r\nrole:master\r\n"


class Places(Protocol):
    """Finds the server that has the keys which begin with a prefix."""

    async def find(self, prefix: str, deadline: float) -> Place:
        """Return where it is, as far as is known; raises what was met when nobody tells by `deadline`."""
        ...

    def moved(self, prefix: str, place: Place, error: Exception) -> None:
        """Learn that the server at `place` is not the one, or no longer, or does not answer.

        Many may meet that together, and some of them late: only what is said of the place that `find` returns counts.
        """
        ...

    def leads_to(self, place: Place) -> bool:
        """Whether somebody says that the keys are at `place`, so that it is not only asked for the way."""
        ...


class OnePlace:
    """A server that stays where the URL says."""

    def __init__(self, options: Options) -> None:
        """Know the one of the URL."""
        self._where = options.where
        [self._place] = options.places

    async def find(self, prefix: str, deadline: float) -> Place:  # noqa: ARG002 - all keys are there
        """Return the place."""
        return self._place

    def moved(self, prefix: str, place: Place, error: Exception) -> None:  # noqa: ARG002 - there is no other
        """Stay; raises when it is one of a Cluster, which has more than we know of."""
        if is_elsewhere(error):
            message = f"{self._where} is a node of a Cluster: write redis+cluster:// in place of redis://"
            raise StoreUnavailable(message) from error

    def leads_to(self, place: Place) -> bool:  # noqa: ARG002 - no other is asked
        """Return True."""
        return True


class BySentinel:
    """The master that the Sentinels name: they are asked again when it is not there, or not the master any more."""

    def __init__(self, options: Options) -> None:
        """Ask nobody yet."""
        self._options = options
        self._sentinels = list(options.places)
        self._master: Place | None = None
        self._asking = asyncio.Lock()

    async def find(self, prefix: str, deadline: float) -> Place:  # noqa: ARG002 - all keys are there
        """Return the master that was right the last time, or ask for it."""
        if self._master is not None:
            return self._master
        # many calls that lost the master together ask once
        async with asyncio.timeout_at(deadline), self._asking:
            if self._master is None:
                self._master = await self._ask_all(deadline)
            return self._master

    async def _ask_all(self, deadline: float) -> Place:
        """Ask the Sentinels one after the other, beginning with the one that answered last."""
        met: Exception | None = None
        for sentinel in list(self._sentinels):
            try:
                async with asyncio.timeout_at(min(deadline, asyncio.get_running_loop().time() + _ONE_SENTINEL)):
                    found = await self._ask(sentinel)
            except Exception as error:  # noqa: BLE001 - the next one may know
                logger.debug("the Sentinel at %s: %r", sentinel, error)
                met = error
                continue
            if found is not None:
                self._sentinels.remove(sentinel)
                self._sentinels.insert(0, sentinel)
                return found
        if met is None:
            raise StoreUnavailable(f"no Sentinel knows a master {self._options.master!r}: check the name in the URL")
        raise met

    def moved(self, prefix: str, place: Place, error: Exception) -> None:  # noqa: ARG002 - whatever it was
        """Ask the Sentinels again, and last of all the one that named this master: it may not have heard the news."""
        if self._master == place:
            self._master = None
            self._sentinels.append(self._sentinels.pop(0))

    def leads_to(self, place: Place) -> bool:  # noqa: ARG002 - no other is asked
        """Return True."""
        return True

    async def _ask(self, sentinel: Place) -> Place | None:
        try:
            wire = await open_sentinel(self._options, sentinel)
            try:
                found = await wire.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._options.master or "")
            finally:
                wire.terminate()
        except Refused as error:
            if not is_of_login(error):
                raise
            message = (
                f"the Sentinel at {sentinel} refused user or password: check ?sentinel_user= and ?sentinel_password= "
                f"of the URL ({error})"
            )
            raise StoreUnavailable(message) from error
        return None if found is None else Place(found[0].decode(), int(found[1]))


class InCluster:
    """The node that has a prefix's slot: learnt from the replies of those that do not."""

    def __init__(self, options: Options) -> None:
        """Know the nodes of the URL, and nothing of slots."""
        self._options = options
        self._nodes = list(options.places)
        self._at: dict[str, Place] = {}

    async def find(self, prefix: str, deadline: float) -> Place:  # noqa: ARG002 - nobody is asked
        """Return the node that was right the last time, or any."""
        return self._at.get(prefix) or self._nodes[0]

    def moved(self, prefix: str, place: Place, error: Exception) -> None:
        """Go where the reply says, or ask another node when one does not answer."""
        if place != (self._at.get(prefix) or self._nodes[0]):
            return
        if is_elsewhere(error):
            host, _, port = str(error).rpartition(" ")[2].rpartition(":")
            self._at[prefix] = named = Place(place.host if host in _SAME_HOST else host, int(port))
            if named not in self._nodes:
                self._nodes.append(named)
        else:
            self._at.pop(prefix, None)
            # the last that is asked for the way to any prefix
            self._nodes.remove(place)
            self._nodes.append(place)

    def leads_to(self, place: Place) -> bool:
        """Whether a node has named it."""
        return place in self._at.values()


def places_of(options: Options) -> Places:
    """Return the way to the servers of `options`."""
    match options.form:
        case "single":
            return OnePlace(options)
        case "sentinel":
            return BySentinel(options)
        case "cluster":
            return InCluster(options)


async def open_place(options: Options, place: Place) -> Wire:
    """Connect to a server at a place that was found; raises what was met, or when it must not be used."""
    wire = await open_wire(options, place)
    if options.form == "sentinel":
        # One that was the master may be named by a Sentinel that has not heard the news. Whoever only looks would never
        # notice, since a replica answers.
        try:
            is_master = _MASTER in await wire.ask("INFO", "replication")
        except BaseException:
            wire.terminate()
            raise
        if not is_master:
            wire.terminate()
            raise StoreReadOnly(f"{options.where}: the one at {place} is not the master any more", retryable=True)
    return wire


async def open_sentinel(options: Options, place: Place) -> Wire:
    """Connect to a Sentinel, which has a user and a password of its own, and no databases."""
    return await open_wire(options.of_sentinel(), place)
