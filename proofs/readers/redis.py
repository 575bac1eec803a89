"""The store's keys as plain redis-py sees them: a second reader that shares no code with Windlass."""

import json
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec
from redis import Redis
from redis.sentinel import Sentinel

from proofs.readers.redis_lines import Lines, counts_off, misplaced
from proofs.readers.sqlite import Claimed, Delivery, Row

APPLICATION: Final = "windlass"
"""How the connections of Windlass are named by the server."""
PATIENCE: Final = 10.0
PAGE: Final = 1_000
MICROS: Final = 1_000_000
TIMEOUT: Final = 5.0


class LastClaim(NamedTuple):
    """The last claim of a job, also when it has ended; when and by whom is gone where it was given up."""

    token: str | None
    attempt: int
    delivery: int
    claimed_at: int | None
    worker: str | None


NO_CLAIM: Final = LastClaim(None, 0, 0, None, None)


class Kept(NamedTuple):
    """A job as its hash has it."""

    id: str
    fields: dict[bytes, bytes]

    @property
    def head(self) -> list[Any]:
        """Number, queue, kind, priority, attempts, time of the enqueue."""
        return _values(6, self.fields[b"head"])

    @property
    def claim(self) -> LastClaim:
        claim = self.fields.get(b"claim")
        return NO_CLAIM if claim is None else LastClaim(*_values(5, claim))

    @property
    def more(self) -> list[Any]:
        """Headers, tenant, parent, schedule, limit: what few jobs have."""
        more = self.fields.get(b"more")
        return [{}, None, None, None, None] if more is None else list(msgspec.msgpack.decode(more))

    @property
    def row(self) -> Row:
        _, queue, kind, *_ = self.head
        finished_at = self.fields.get(b"finished_at")
        return Row(
            id=self.id,
            queue=queue,
            payload=msgspec.msgpack.decode(self.fields[b"body"])[1],
            state=self.fields.get(b"state", b"pending").decode(),
            attempt=self.claim.attempt,
            delivery=self.claim.delivery,
            kind=kind or None,
            finished_at=None if finished_at is None else int(finished_at),
        )


class Part(NamedTuple):
    """Queues whose keys begin alike, and who has them."""

    client: Any
    prefix: str
    queues: list[str]

    def pages(self, pattern: str) -> Iterator[list[bytes]]:
        """Return the keys that look so behind the prefix."""
        return _pages(self.client, f"{self.prefix}{pattern}")


class RedisReader:
    """A store on one server, or on the one that Sentinels name; every look is a connection of its own."""

    def __init__(self, url: str) -> None:
        self._url = url
        options = parse_qs(urlsplit(url).query)
        self._prefix = f"{{{options.get('prefix', ['windlass'])[0]}}}|"

    @contextmanager
    def reading(self) -> Generator[Any]:
        """A client; the driver's types are of no help here."""
        client = connect(self._url)
        try:
            yield client
        finally:
            client.close()

    @contextmanager
    def parts(self) -> Generator[list[Part]]:
        """All that is kept of the queues."""
        with self.reading() as client:
            yield [Part(client, self._prefix, self._queues(client))]

    def key(self, name: str) -> str:
        """Return the whole of a key."""
        return f"{self._prefix}{name}"

    def kept(self) -> Iterator[Kept]:
        """Return every job, also one that stands in no line."""
        with self.parts() as parts:
            for part in parts:
                for page in part.pages("job|*"):
                    many = part.client.pipeline(transaction=False)
                    for key in page:
                        many.hgetall(key)
                    for key, fields in zip(page, many.execute(), strict=True):
                        if fields:
                            yield Kept(_last(key), fields)

    def jobs(self) -> dict[str, Row]:
        return {job.id: job.row for job in self.kept()}

    def headers(self) -> dict[str, dict[str, str]]:
        """Return the headers of each job that has some."""
        return {job.id: headers for job in self.kept() if (headers := job.more[0])}

    def enqueued_at(self) -> dict[str, float]:
        """Return when each job was enqueued, in seconds since 1970."""
        return {job.id: job.head[5] / MICROS for job in self.kept()}

    def tokens(self) -> dict[str, str]:
        """Return the token of each job's last claim."""
        return {job.id: token for job in self.kept() if (token := job.claim.token)}

    def unfinished(self) -> int:
        """Return how many jobs have not come to an end."""
        return self.waiting() + self._length("due", "leased")

    def waiting(self) -> int:
        """Return how many jobs wait to be claimed."""
        with self.parts() as parts:
            return sum(
                part.client.zcard(f"{part.prefix}ready|{queue}|{kind.decode()}")
                for part in parts
                for queue in part.queues
                for kind in part.client.smembers(f"{part.prefix}kinds|{queue}")
            )

    def lines(self) -> list[Lines]:
        """Return who stands where, by queue, each as it was at one moment."""
        with self.parts() as parts:
            return [Lines.read(part.client, part.prefix, queue) for part in parts for queue in part.queues]

    def outcomes(self) -> dict[tuple[str, int], str]:
        """Return how deliveries ended that were not a job's last, by job and number."""
        return {(each.job, each.delivery): each.outcome for each in self.deliveries()}

    def deliveries(self) -> list[Delivery]:
        """Return the deliveries that ended otherwise than by a success."""
        found: list[Delivery] = []
        with self.parts() as parts:
            for part in parts:
                for page in part.pages("history|*"):
                    many = part.client.pipeline(transaction=False)
                    for key in page:
                        many.lrange(key, 0, -1)
                    for key, ended in zip(page, many.execute(), strict=True):
                        found += [_delivery(_last(key), packed) for packed in ended]
        return found

    def claims(self) -> list[Claimed]:
        """Return when servers claimed, in the order of time."""
        claims = [job.claim for job in self.kept()]
        last = [Claimed(each.worker or "", each.claimed_at / MICROS) for each in claims if each.claimed_at]
        before = [Claimed(each.worker, each.started_at) for each in self.deliveries()]
        return sorted(last + before, key=lambda claim: claim.at)

    def totals(self) -> tuple[int, int]:
        """Return how many jobs were ever counted as enqueued, and as succeeded."""
        with self.parts() as parts:
            totals = [part.client.hgetall(f"{part.prefix}totals|{queue}") for part in parts for queue in part.queues]
        enqueued, succeeded = (sum(int(each.get(what, 0)) for each in totals) for what in (b"enqueued", b"succeeded"))
        return enqueued, succeeded

    def servers(self) -> list[str]:
        """Return the servers that are registered."""
        with self.reading() as client:
            return [name.decode() for name in client.hkeys(self.key("servers"))]

    def pids(self) -> dict[str, int]:
        """Return the processes of the servers that are registered."""
        with self.reading() as client:
            records = client.hgetall(self.key("servers"))
        return {name.decode(): json.loads(record)["pid"] for name, record in records.items()}

    def counts_off(self) -> list[str]:
        """Return the lines that have another length than there are jobs for them."""
        return counts_off(self.lines(), self.jobs().values())

    def integrity(self) -> list[str]:
        """Return jobs that do not stand where they must, and what belongs to no job."""
        rows = self.jobs()
        said = misplaced(self.lines(), rows)
        with self.parts() as parts:
            for what in ("history", "log"):
                owned = [_last(key) for part in parts for page in part.pages(f"{what}|*") for key in page]
                said += [f"{what} of {job}, which is not there" for job in owned if job not in rows]
        return said if rows else ["there are no jobs"]

    def left_behind(self) -> list[str]:
        """Return the connections of Windlass that are still there, a while after the last server has ended."""
        until = time.monotonic() + PATIENCE
        while (connections := self.connections()) and time.monotonic() < until:
            time.sleep(0.05)
        return [str(each) for each in connections]

    def connections(self) -> list[dict[str, str]]:
        """Return what the server tells of the connections of Windlass."""
        with self.reading() as client:
            return [each for each in client.client_list() if each["name"] == APPLICATION]

    def version(self) -> str:
        """Return what runs, and how it keeps what it has acknowledged."""
        with self.reading() as client:
            info = client.info("server")
            kept = client.config_get("append*")
        name = info.get("server_name", "redis").capitalize()
        version = info.get("valkey_version", info["redis_version"])
        durable = "appendfsync " + kept["appendfsync"] if kept["appendonly"] == "yes" else "appendonly no"
        return f"{name} {version} with {durable}"

    def _length(self, *names: str) -> int:
        with self.parts() as parts:
            return sum(
                part.client.zcard(f"{part.prefix}{name}|{queue}")
                for part in parts
                for queue in part.queues
                for name in names
            )

    def _queues(self, client: Any) -> list[str]:  # noqa: ANN401
        return sorted(queue.decode() for queue in client.smembers(self.key("queues")))


def connect(url: str) -> Any:  # noqa: ANN401 - the driver's types are of no help here
    """Return a client of the server that a store's URL leads to; of Sentinels it is the master that they name."""
    parts = urlsplit(url)
    timeouts = {"socket_timeout": TIMEOUT, "socket_connect_timeout": TIMEOUT}
    driver: Any = Redis
    if not parts.scheme.startswith("redis+sentinel"):
        return driver.from_url(parts._replace(query="").geturl(), protocol=2, **timeouts)
    _, _, places = parts.netloc.rpartition("@")
    sentinels = [(host, int(port)) for host, _, port in (place.rpartition(":") for place in places.split(","))]
    login = {"password": unquote(parts.password)} if parts.password else {}
    master = parts.path.strip("/").partition("/")[0]
    found: Any = Sentinel(sentinels, sentinel_kwargs=timeouts)
    host, port = found.discover_master(master)
    return driver(host=host, port=port, protocol=2, **login, **timeouts)


def _pages(client: Any, pattern: str) -> Iterator[list[bytes]]:  # noqa: ANN401
    cursor, seen = 0, set[bytes]()
    while True:
        cursor, keys = client.scan(cursor, match=pattern, count=PAGE)
        # a key may be shown twice
        if fresh := [key for key in keys if key not in seen]:
            seen.update(fresh)
            yield fresh
        if not cursor:
            return


def _values(count: int, packed: bytes) -> list[Any]:
    """Return values that are kept packed one behind the other."""
    return list(msgspec.msgpack.decode(bytes([0x90 | count]) + packed))


def _last(key: bytes) -> str:
    """Return the end of a key, which is the id of a job."""
    return key.rpartition(b"|")[2].decode()


def _delivery(job: str, packed: bytes) -> Delivery:
    delivery, _, started_at, ended_at, worker, outcome, _ = msgspec.msgpack.decode(packed)
    return Delivery(job, delivery, worker or "", outcome, started_at / MICROS, ended_at / MICROS)
