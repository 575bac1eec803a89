"""The contestants by name, each loaded when it is asked for: a peer that is not installed costs nothing."""

from importlib import import_module

from benchmarks.measuring.contestant import Contestant

STORES = {
    "sqlite": {
        "windlass": "windlass:SQLITE",
        "windlass-memory": "windlass:MEMORY",
        "windlass-server": "server:SQLITE",
        "windlass-server-memory": "memory_server:CONTESTANT",
        "bare": "bare_sqlite:CONTESTANT",
        "honker": "honker:CONTESTANT",
        "litequeue": "litequeue:CONTESTANT",
        "huey": "huey:CONTESTANT",
        "persist-queue": "persist_queue:CONTESTANT",
    },
    "postgres": {
        "windlass-postgres": "windlass:POSTGRES",
        "windlass-server-postgres": "server:POSTGRES",
        "windlass-server-postgres-asyncio": "server:POSTGRES_ON_ASYNCIO",
        "bare-postgres": "bare_postgres:CONTESTANT",
        "pgqueuer": "pgqueuer:CONTESTANT",
        "procrastinate": "procrastinate:CONTESTANT",
        "oban": "oban:CONTESTANT",
        "awa": "awa:CONTESTANT",
        "chancy": "chancy:CONTESTANT",
        "saq-postgres": "saq:POSTGRES",
        "dbos": "dbos:CONTESTANT",
        "django-tasks-db": "django_tasks_db:CONTESTANT",
    },
    "redis": {
        "windlass-redis": "windlass:REDIS",
        "windlass-server-redis": "server:REDIS",
        "windlass-server-redis-asyncio": "server:REDIS_ON_ASYNCIO",
        "bare-redis": "bare_redis:CONTESTANT",
        "dramatiq": "dramatiq:CONTESTANT",
        "taskiq": "taskiq:CONTESTANT",
        "saq": "saq:REDIS",
        "docket": "docket:CONTESTANT",
        "streaq": "streaq:CONTESTANT",
        "celery": "celery:CONTESTANT",
        "arq": "arq:CONTESTANT",
        "rq": "rq:CONTESTANT",
    },
    "http": {
        "windlass-http": "windlass:HTTP",
        "windlass-server-http": "http_server:HTTP",
        "directly": "windlass:DIRECTLY",
        "directly-server": "http_server:DIRECTLY",
        "bare-http": "bare_http:CONTESTANT",
    },
    "slatedb": {
        "windlass-slatedb": "windlass:SLATEDB",
        "windlass-server-slatedb": "slatedb_server:SLATEDB",
        "bare-slatedb": "bare_slatedb:CONTESTANT",
    },
}
"""The contestants of a run, by the store that they are measured on; memory stands with the store that needs nothing."""

PLACES = {name: place for places in STORES.values() for name, place in places.items()}


def load(name: str) -> Contestant:
    """Return the contestant of this name; raises `ImportError` when its package is missing or cannot be loaded."""
    module, attribute = PLACES[name].split(":")
    contestant = getattr(import_module(f"{__name__}.{module}"), attribute)
    if not isinstance(contestant, Contestant):
        message = f"{PLACES[name]} is not a contestant"
        raise TypeError(message)
    return contestant
