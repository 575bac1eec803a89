"""From a URL to a store: the only file that knows every store, and it imports each when its URL asks for it."""

import logging
import os
import re
import socket
import threading
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Final, ParamSpec

from windlass.blocking.client import BlockingClient
from windlass.client.client import Background, Client
from windlass.codec import JSON, Codec
from windlass.core.clock import Clock, Rng, Spawn
from windlass.core.duration import ZERO, Duration, duration
from windlass.core.errors import InvalidURL, InvalidValue, MissingExtra
from windlass.core.migrating import Migrator
from windlass.core.names import MAX_NAME, MAX_PAYLOAD, check_name
from windlass.core.retry import RetryRule
from windlass.core.settings import UNSET, QueueSettings, Settings, Unset, resolve
from windlass.core.store import Store
from windlass.core.store_guard import check_store_of
from windlass.store_url import StoreURL, parse
from windlass.system import SystemClock, SystemRng, TaskSpawn

if TYPE_CHECKING:
    from windlass.stores.http.options import Options as HttpOptions
    from windlass.stores.postgres.options import Options as PostgresOptions
    from windlass.stores.redis.options import Options as RedisOptions
    from windlass.stores.slatedb.address import Address as SlateAddress
    from windlass.stores.sqlite import SqliteStore

logger = logging.getLogger("windlass")

P = ParamSpec("P")

_YES_OR_NO: Final = ("yes", "no")
_SQLITE_OPTIONS: Final = {"synchronous": ("full", "normal"), "create": _YES_OR_NO, "migrate": _YES_OR_NO}
_POSTGRES_OPTIONS: Final[Mapping[str, Collection[str] | None]] = {
    "schema": None,
    "notify": ("on", "off"),
    "create": _YES_OR_NO,
    "migrate": _YES_OR_NO,
    "timeout": None,
    "connections": None,
    "pooler": ("auto", "none", "transaction"),
    # what follows is passed on to the driver, which names it as libpq does
    "host": None,
    "port": None,
    "user": None,
    "password": None,
    "dbname": None,
    "passfile": None,
    "service": None,
    "application_name": None,
    "options": None,
    "sslmode": ("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    "sslrootcert": None,
    "sslcert": None,
    "sslkey": None,
    "sslpassword": None,
    "sslcrl": None,
    "sslnegotiation": ("postgres", "direct"),
    "ssl_min_protocol_version": None,
    "ssl_max_protocol_version": None,
    "channel_binding": None,
    "krbsrvname": None,
    "gsslib": None,
    "target_session_attrs": ("any", "primary", "read-write"),
}
_REDIS_OPTIONS: Final[Mapping[str, Collection[str] | None]] = {
    "prefix": None,
    "spread": ("queues",),
    "create": _YES_OR_NO,
    "migrate": _YES_OR_NO,
    "timeout": None,
    "connections": None,
    "wait": None,
    "evicting": ("allowed",),
    "tls": ("yes",),
    "tls_ca": None,
    "tls_cert": None,
    "tls_key": None,
    "sentinel_user": None,
    "sentinel_password": None,
}
_SLATEDB_OPTIONS: Final[Mapping[str, Collection[str] | None]] = {
    "create": _YES_OR_NO,
    "take_over": ("0", "1"),
    "look": _YES_OR_NO,
    "endpoint": None,
    "region": None,
    "timeout": None,
    "flush": None,
}
_HTTP_OPTIONS: Final[Mapping[str, Collection[str] | None]] = {
    "timeout": None,
    "connections": None,
    "tls_ca": None,
    "tls_cert": None,
    "tls_key": None,
}
TOKEN: Final = "WINDLASS_TOKEN"  # noqa: S105 - where it is found
"""The environment variable of the token of an http:// store, where the code gives none."""
_named: dict[str, Store] = {}
_guard = threading.Lock()


def connect(
    url: str | Store,
    *,
    token: str | None = None,
    max_attempts: int | Unset = UNSET,
    lease: Duration | Unset = UNSET,
    priority: int | Unset = UNSET,
    retry: RetryRule | Unset = UNSET,
    keep_succeeded: Duration | Unset | None = UNSET,
    keep_dead: Duration | Unset | None = UNSET,
    keep_cancelled: Duration | Unset | None = UNSET,
    max_payload: int = MAX_PAYLOAD,
    keep_max: int | Unset | None = UNSET,
    queues: Mapping[str, QueueSettings] | None = None,
    services: bool = False,
    rescue_interval: Duration | None = None,
    prune_interval: Duration | None = None,
    heartbeat_interval: Duration | None = None,
    poll_interval: Duration = 1.0,
    worker: str | None = None,
    codec: Codec = JSON,
    clock: Clock | None = None,
    rng: Rng | None = None,
) -> Client:
    """Return a client of the store at `url`; it opens at `async with`, or at its first use.

    In place of a URL it takes a store of your own, which it opens and closes. `token` is for http:// and https://, and
    is else read from WINDLASS_TOKEN; it is never shown.
    A wrong URL or setting is refused here. `queues` holds the settings of single queues, over those of the client.
    `services=True` runs rescue, promotion and pruning in this process as a server does, at the intervals of a server
    unless `rescue_interval`, `prune_interval` or `heartbeat_interval` is given; on a store that is served they run
    where it is served, and a line in the log says so.

    ```python
    import windlass

    async with windlass.connect("sqlite:///jobs.db", max_attempts=5) as client:
        done = await client.enqueue("email", b"hello")
        claim = await client.claim("email", lease=30)
        await client.ack(claim)
    ```
    """
    clock = clock or SystemClock()
    rng = rng or SystemRng()
    store = _given(url) if not isinstance(url, str) else open_store(url, clock=clock, rng=rng, token=token)
    if isinstance(url, str):
        check_store_of(url)
    if token is not None and not (isinstance(url, str) and store.features.served):
        message = "token= goes with an http:// or https:// URL: leave it out for other stores"
        raise InvalidValue(message)
    given = QueueSettings(max_attempts, lease, priority, retry, keep_succeeded, keep_dead, keep_cancelled)
    most = store.features.keeps_at_most if isinstance(keep_max, Unset) else keep_max
    settings = resolve(given, queues, max_payload=max_payload, keep_max=most)
    interval = _interval(poll_interval, "poll_interval").total_seconds()
    name = _default_worker() if worker is None else check_name(worker, "worker")
    spawn = TaskSpawn()
    background = None
    intervals = _intervals(
        services=services, rescue_interval=rescue_interval, prune_interval=prune_interval,
        heartbeat_interval=heartbeat_interval,
    )  # fmt: skip
    if services:
        background = _services(store, settings, name=name, clock=clock, rng=rng, spawn=spawn, intervals=intervals)
    return Client(
        store,
        settings,
        codec=codec,
        clock=clock,
        rng=rng,
        spawn=spawn,
        poll_interval=interval,
        worker=name,
        services=background,
    )


def _blocking_form(make: Callable[P, Client]) -> Callable[P, BlockingClient]:
    @wraps(make)
    def connect_sync(*args: P.args, **kwargs: P.kwargs) -> BlockingClient:
        return BlockingClient(lambda: make(*args, **kwargs))

    return connect_sync


connect_sync = _blocking_form(connect)
"""Return a client whose methods block, for programs without an event loop; it takes what `connect` takes."""


def open_store(url: str, *, clock: Clock | None = None, rng: Rng | None = None, token: str | None = None) -> Store:
    """Return the store at `url`, not opened yet; a `token` is of no use to a store that is not http://."""
    parts = parse(url, _STORES)
    make = _STORES[parts.scheme]
    clock, rng = clock or SystemClock(), rng or SystemRng()
    return _http(parts, clock, rng, token) if make is _http else make(parts, clock, rng)


def without_creating(url: str, *, look: bool = True) -> str:
    """Return `url` so that opening it makes nothing that is not there; with `look`, for whoever changes nothing at all.

    Who only looks at a store that one process owns does so beside its owner.
    """
    parts = parse(url, _STORES)
    if parts.scheme.startswith("slatedb+"):
        looking = parts.with_option(url, "look", "yes") if look else url
        return parse(looking, _STORES).with_option(looking, "create", "no")
    return parts.with_option(url, "create", "no") if parts.scheme in _MIGRATORS else url


def lead_to_one_store(one: str, other: str) -> bool:
    """Whether two URLs lead to the same jobs as far as they tell it: nothing is opened, and no host is looked up.

    Where they do not tell it, they may still do so.
    """
    return not _known_as(one).isdisjoint(_known_as(other))


def migrator(url: str) -> Migrator | None:
    """Return what brings the schema of the store at `url` up; None for a store that has none."""
    parts = parse(url, _STORES)
    make = _MIGRATORS.get(parts.scheme)
    return None if make is None else make(parse(parts.with_option(url, "migrate", "yes"), _STORES))


def _given(store: Store) -> Store:
    if callable(getattr(store, "claim", None)):
        return store
    message = f"connect takes a URL or a store, not {type(store).__name__}"
    raise InvalidURL(message)


def _memory(url: StoreURL, clock: Clock, rng: Rng) -> Store:
    from windlass.stores.memory import MemoryStore

    url.check_options({})
    if url.path:
        message = "memory:// takes one name and no path: memory://name"
        raise InvalidURL(message)
    if not url.host:
        return MemoryStore(clock=clock, rng=rng)
    name = check_name(url.host, "memory store")
    with _guard:
        # a named one lives with the process, and keeps the clock that it was made with
        return _named.setdefault(name, MemoryStore(clock=clock, rng=rng))


def _sqlite(url: StoreURL, clock: Clock, rng: Rng) -> "SqliteStore":
    from windlass.stores.sqlite import SqliteStore

    url.check_options(_SQLITE_OPTIONS)
    return SqliteStore(
        _sqlite_path(url),
        clock=clock,
        rng=rng,
        synchronous="normal" if url.options.get("synchronous") == "normal" else "full",
        create=url.options.get("create") != "no",
        migrate=url.options.get("migrate") == "yes",
    )


def _sqlite_migrator(url: StoreURL) -> Migrator:
    from windlass.stores.sqlite.migrator import SqliteMigrator

    return SqliteMigrator(_sqlite_path(url), _sqlite(url, SystemClock(), SystemRng()))


def _sqlite_path(url: StoreURL) -> Path:
    if url.host:
        message = (
            "sqlite:// is followed by a path: three slashes for a relative one, sqlite:///jobs.db, four for an absolute"
        )
        raise InvalidURL(message)
    name = url.path.removeprefix("/")
    if name == ":memory:":
        message = "a store in memory is memory://, or memory://name to share it in the process"
        raise InvalidURL(message)
    if not name or name.endswith("/") or "\0" in name:
        message = "sqlite:// needs the path of a file: sqlite:///jobs.db"
        raise InvalidURL(message)
    return Path(name)


def _postgres(url: StoreURL, clock: Clock, rng: Rng) -> Store:
    address = _postgres_address(url)
    from windlass.stores.postgres import PostgresStore

    return PostgresStore(address, clock=clock, rng=rng)


def _postgres_migrator(url: StoreURL) -> Migrator:
    address = _postgres_address(url)
    from windlass.stores.postgres.migrator import PostgresMigrator

    return PostgresMigrator(address)


def _postgres_address(url: StoreURL) -> "PostgresOptions":
    url.check_options(_POSTGRES_OPTIONS)
    with _driver_of(url, "asyncpg", "postgres"):
        from windlass.stores.postgres.address import read_address

    return read_address(url.host, url.path, url.options)


def _redis(url: StoreURL, clock: Clock, rng: Rng) -> Store:
    address = _redis_address(url)
    from windlass.stores.redis import RedisStore

    return RedisStore(address, clock=clock, rng=rng)


def _redis_migrator(url: StoreURL) -> Migrator:
    address = _redis_address(url)
    from windlass.stores.redis.migrator import RedisMigrator

    return RedisMigrator(address, SystemClock())


def _redis_address(url: StoreURL) -> "RedisOptions":
    url.check_options(_REDIS_OPTIONS)
    with _driver_of(url, "hiredis", "redis"):
        from windlass.stores.redis.address import read_address

    return read_address(url.scheme, url.host, url.path, url.options)


def _slatedb(url: StoreURL, clock: Clock, rng: Rng) -> Store:
    address = _slatedb_address(url)
    from windlass.stores.slatedb import SlateStore

    return SlateStore(address, clock=clock, rng=rng)


def _slatedb_address(url: StoreURL) -> "SlateAddress":
    with _driver_of(url, "slatedb", "slatedb"):
        from windlass.stores.slatedb.address import read_address

    address = read_address(url.scheme, url.host, url.path, url.options)
    url.check_options(_SLATEDB_OPTIONS)
    return address


def _http(url: StoreURL, _: Clock, rng: Rng, token: str | None = None) -> Store:
    # an empty variable counts as not set, as everywhere
    found = os.environ.get(TOKEN, "").strip() or None if token is None else token
    address = _http_address(url, found)
    from windlass.stores.http import HttpStore

    return HttpStore(address, rng=rng)


def _http_address(url: StoreURL, token: str | None = None) -> "HttpOptions":
    with _driver_of(url, "httptools", "web"):
        from windlass.stores.http.address import read_address

    address = read_address(url.scheme, url.host, url.path, url.options, token=token)
    url.check_options(_HTTP_OPTIONS)
    return address


def _known_as(url: str) -> frozenset[tuple[object, ...]]:
    """Return names of the store at `url` that are no other's."""
    parts = parse(url, _STORES)
    return _NAMES[_STORES[parts.scheme]](parts)


def _memory_names(url: StoreURL) -> frozenset[tuple[object, ...]]:
    return frozenset({("memory", url.host)} if url.host else ())


def _sqlite_names(url: StoreURL) -> frozenset[tuple[object, ...]]:
    return frozenset({("sqlite", _sqlite_path(url).resolve())})


@contextmanager
def _driver_of(url: StoreURL, driver: str, extra: str) -> Generator[None]:
    """Name the extra that brings a driver, where it is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != driver:
            raise
        raise MissingExtra(f"{url.scheme}://", extra) from error


_STORES: Final[Mapping[str, Callable[[StoreURL, Clock, Rng], Store]]] = {
    "memory": _memory,
    "sqlite": _sqlite,
    "postgres": _postgres,
    "postgresql": _postgres,
    "redis": _redis,
    "rediss": _redis,
    "redis+sentinel": _redis,
    "redis+cluster": _redis,
    "slatedb+memory": _slatedb,
    "slatedb+file": _slatedb,
    "slatedb+s3": _slatedb,
    "slatedb+gs": _slatedb,
    "slatedb+az": _slatedb,
    "http": _http,
    "https": _http,
}
_NAMES: Final[Mapping[object, Callable[[StoreURL], frozenset[tuple[object, ...]]]]] = {
    _memory: _memory_names,
    _sqlite: _sqlite_names,
    _postgres: lambda url: _postgres_address(url).known_as,
    _redis: lambda url: _redis_address(url).known_as,
    _slatedb: lambda url: _slatedb_address(url).known_as,
    _http: lambda url: _http_address(url).known_as,
}
_MIGRATORS: Final[Mapping[str, Callable[[StoreURL], Migrator]]] = {
    "sqlite": _sqlite_migrator,
    "postgres": _postgres_migrator,
    "postgresql": _postgres_migrator,
    "redis": _redis_migrator,
    "rediss": _redis_migrator,
    "redis+sentinel": _redis_migrator,
    "redis+cluster": _redis_migrator,
}


def _services(
    store: Store,
    settings: Settings,
    *,
    name: str,
    clock: Clock,
    rng: Rng,
    spawn: Spawn,
    intervals: Mapping[str, timedelta],
) -> Background | None:
    if store.features.served:
        logger.info("services=True changes nothing here: whoever serves this store rescues, promotes and prunes")
        return None
    from windlass.engine.services import Services

    return Services(store, settings, name=name, clock=clock, rng=rng, spawn=spawn, **intervals)


def _intervals(*, services: bool, **given: Duration | None) -> dict[str, timedelta]:
    """Return the intervals that services were given, by name."""
    intervals = {name: _interval(value, name) for name, value in given.items() if value is not None}
    if intervals and not services:
        message = f"{' and '.join(intervals)} changes nothing without services=True: add it, or leave the interval out"
        raise InvalidValue(message)
    return intervals


def _interval(value: Duration, what: str) -> timedelta:
    interval = duration(value, what)
    if interval == ZERO:
        message = f"{what} must be greater than zero: give the time between two rounds, for example 1.0"
        raise InvalidValue(message)
    return interval


def _default_worker() -> str:
    host = re.sub(r"[^A-Za-z0-9_.-]", "-", socket.gethostname()) or "localhost"
    return f"{host[: MAX_NAME // 2]}:{os.getpid()}"
