"""Who has to wait: those who try wrong tokens, and those who ask more often than their token allows."""

import ipaddress
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from windlass.core.clock import Clock
from windlass.http.auth import Identity
from windlass.system import SystemClock

FAILURES: Final = 10
WINDOW: Final = 60.0
LONGEST_WAIT: Final = 900.0
MOST_PEERS: Final = 10_000
MOST_RATES: Final = 10_000
_DOUBLINGS: Final = 10
_NETWORK_BITS: Final = 64


@dataclass(slots=True)
class _Peer:
    since: float
    failures: int = 0
    waits: int = 0
    until: float = 0.0

    def forgotten_at(self) -> float:
        return max(self.since, self.until) + WINDOW


class WrongTokens:
    """Counts wrong tokens by the address that they come from.

    After ten within a minute each further one has to wait, twice as long each time, a quarter of an hour at most. A
    minute in which none came is the end of it. Whoever has a right token is never asked here, and never waits.
    """

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._peers: OrderedDict[str, _Peer] = OrderedDict()

    def __len__(self) -> int:
        return len(self._peers)

    def failed(self, address: str) -> float:
        """Note a wrong token; return how many seconds to wait before another is looked at, 0 for none."""
        now = self._clock.monotonic()
        peer = self._peer(network_of(address), now)
        if now < peer.until:
            return peer.until - now
        peer.failures += 1
        if peer.failures <= FAILURES:
            return 0.0
        peer.waits += 1
        wait = min(2.0 ** min(peer.waits, _DOUBLINGS), LONGEST_WAIT)
        peer.until = now + wait
        return wait

    def _peer(self, network: str, now: float) -> _Peer:
        peer = self._peers.get(network)
        if peer is None or now >= peer.forgotten_at():
            peer = self._peers[network] = _Peer(now)
        self._peers.move_to_end(network)
        if len(self._peers) > MOST_PEERS:
            self._peers.popitem(last=False)
        return peer


@dataclass(slots=True)
class _Bucket:
    left: float
    seen_at: float


class Rates:
    """Lets each identity ask as often as its rate says, evenly or up to a second's worth at once."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, identity: Identity) -> float:
        """Count a request; return how many seconds to wait before it may be made, 0 when it may be made now."""
        rate = identity.rate
        if rate is None:
            return 0.0
        now, room = self._clock.monotonic(), max(1.0, rate)
        bucket = self._bucket(identity.name, room, now)
        bucket.left = min(room, bucket.left + (now - bucket.seen_at) * rate)
        bucket.seen_at = now
        if bucket.left < 1.0:
            return (1.0 - bucket.left) / rate
        bucket.left -= 1.0
        return 0.0

    def _bucket(self, name: str, room: float, now: float) -> _Bucket:
        bucket = self._buckets.get(name)
        if bucket is None:
            bucket = self._buckets[name] = _Bucket(room, now)
        self._buckets.move_to_end(name)
        if len(self._buckets) > MOST_RATES:
            self._buckets.popitem(last=False)
        return bucket


def network_of(address: str) -> str:
    """Return what one customer of a network has: an address of version 4, or 64 bits of version 6."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address[:100]
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((int(found), _NETWORK_BITS), strict=False))
