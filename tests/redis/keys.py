"""The keys of one store, looked at and removed past the store."""

import re
import secrets
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import parse_qs, urlsplit

from tests.redis.asking import as_sent, connected


def new_prefix() -> str:
    """Return a prefix that no store has."""
    return f"test_{secrets.token_hex(6)}"


def with_options(url: str, options: str) -> str:
    """Return a URL with more options."""
    return f"{url}{'&' if '?' in url else '?'}{options}"


def prefix_of(url: str) -> str:
    """Return the prefix that a store URL names."""
    [prefix] = parse_qs(urlsplit(url).query)["prefix"]
    return prefix


def keys_of(url: str) -> set[str]:
    """Return the keys of the store at `url`, on all the servers that it names."""
    return {key for server in servers_of(url) for keys in _found(server, prefix_of(url)) for key in keys}


def remove_keys(url: str) -> None:
    """Remove all that the store at `url` has on the servers that it names."""
    for server in servers_of(url):
        with closing(connected(server)) as client:
            for keys in _found(server, prefix_of(url)):
                # one by one: in a Cluster no command is about keys of two slots
                with client.pipeline(transaction=False) as pipeline:
                    for key in keys:
                        pipeline.unlink(as_sent(key))
                    pipeline.execute()


def servers_of(url: str) -> list[str]:
    """Return the URL of each server that a store URL names, without options."""
    parts = urlsplit(url)
    user, at, places = parts.netloc.rpartition("@")
    plain = parts._replace(scheme=parts.scheme.partition("+")[0], query="")
    return [plain._replace(netloc=f"{user}{at}{place}").geturl() for place in places.split(",")]


def _found(server: str, prefix: str) -> Iterator[list[str]]:
    pattern = "{" + re.sub(r"([*?\[\]\\^])", r"\\\1", prefix) + "*"
    with closing(connected(server)) as client:
        cursor = 0
        while True:
            cursor, keys = client.scan(cursor, match=pattern, count=1000)
            if keys:
                yield keys
            if not cursor:
                return
