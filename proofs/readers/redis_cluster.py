"""The keys of a store on a Redis Cluster, with all of them on one master or with its queues spread."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from redis.crc import key_slot

from proofs.readers.redis import Part, RedisReader, connect
from tests.redis.forming import shards_of
from tests.redis.keys import servers_of


class RedisClusterReader(RedisReader):
    """A store on several servers, each of which is asked for what it has; no slot may move meanwhile."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        options = parse_qs(urlsplit(url).query)
        self._name: Final = options.get("prefix", ["windlass"])[0]
        self._spread: Final = "spread" in options
        self._servers: Final = servers_of(url)
        self._shards: Final = shards_of(urlsplit(self._servers[0]).port or 0)

    @contextmanager
    def reading(self) -> Generator[Any]:
        """A client of the server that has what belongs to no queue."""
        with ExitStack() as undoing:
            yield self._client(self._prefix, undoing)

    @contextmanager
    def parts(self) -> Generator[list[Part]]:
        with ExitStack() as undoing:
            home = self._client(self._prefix, undoing)
            queues = self._queues(home)
            if not self._spread:
                yield [Part(home, self._prefix, queues)]
                return
            prefixes = {queue: f"{{{self._name}|{queue}}}|" for queue in queues}
            yield [Part(self._client(prefix, undoing), prefix, [queue]) for queue, prefix in prefixes.items()]

    def connections(self) -> list[dict[str, str]]:
        return [each for url in self._servers for each in RedisReader(url).connections()]

    def version(self) -> str:
        queues = "queues spread" if self._spread else "all keys on one"
        return f"{super().version()}, a Cluster of {len(self._servers)} masters with {queues}"

    def _client(self, prefix: str, undoing: ExitStack) -> Any:  # noqa: ANN401 - the driver's types are of no help here
        slot = key_slot(prefix.encode())
        [port] = [shard.ports[0] for shard in self._shards if shard.first <= slot <= shard.last]
        client = connect(f"redis://127.0.0.1:{port}/0")
        undoing.callback(client.close)
        return client
