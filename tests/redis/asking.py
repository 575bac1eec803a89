"""Questions that tests put to a Redis themselves, past the store: one connection each, no second try."""

from collections.abc import Callable
from contextlib import closing
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from proofs.children import eventually

Word: TypeAlias = str | bytes | int

_PATIENCE: Final = 30.0


def ask(url: str, name: str, *words: Word) -> Any:  # noqa: ANN401 - each command has its own
    """Return what one command brings, as text; see `connected`."""
    with closing(connected(url)) as client:
        return client.execute_command(name, *map(as_sent, words))


def connected(url: str) -> Any:  # noqa: ANN401 - the driver's types are of no help here
    """Return a client of the one server that a store's URL leads to.

    Its answers are text, in which bytes that are none survive; see `as_sent`.
    """
    driver: Any = Redis
    return driver.from_url(
        dsn_of(url),
        protocol=2,
        decode_responses=True,
        encoding_errors="surrogateescape",
        retry=Retry(NoBackoff(), 0),
    )


def as_sent(word: Word) -> bytes | int:
    """Return a word as it is sent: text that came from a server is the bytes that it came as."""
    return word.encode(errors="surrogateescape") if isinstance(word, str) else word


def dsn_of(url: str) -> str:
    """Return a store URL as drivers read it, which know nothing of the store's options."""
    return urlsplit(url)._replace(query="").geturl()


def wait_until(true: Callable[[], bool], otherwise: str) -> None:
    """Return when `true()`, where a server that does not answer means no; after half a minute raises `otherwise`."""

    def is_true() -> bool:
        try:
            return true()
        except (RedisError, OSError):
            return False

    if not eventually(is_true, _PATIENCE, every=0.01):
        raise RuntimeError(otherwise)
