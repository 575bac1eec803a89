"""How our own connections are set up."""

from typing import Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

from windlass.stores.postgres.options import Options

APPLICATION: Final = "windlass"
"""The name under which our connections are shown by the server, unless the URL gives another."""
NOTICE_GONE: Final = "client_connection_check_interval"
"""How often the server looks, while a statement runs, whether we are still there; not every system can tell it."""
_OF_EACH: Final = {
    # by this one probe.sql knows that nobody on the way has left our settings out
    "windlass.ours": "yes",
    "default_transaction_isolation": "read committed",
    "timezone": "UTC",
    # a call that was given up holds its rows no longer than this, in milliseconds
    NOTICE_GONE: "1000",
    # a machine that is gone without a word keeps its rows locked for a minute at most
    "tcp_keepalives_idle": "20",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "4",
}
_PLANS: Final = {
    # every statement is written for one index: a plan that was made while the tables were empty must not stay
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "jit": "off",
    # planning a claim takes longer than claiming, and the plan is the same for all parameters
    "plan_cache_mode": "force_generic_plan",
    "max_parallel_workers_per_gather": "0",
}


class Limits(NamedTuple):
    """After how many milliseconds the server gives up by itself, as it wants them: as text.

    Waiting for a row ends before the statement does, and that before the deadline of the call: so that whoever waits
    for somebody else's transaction is told so, and nothing of ours goes on at the server when nobody waits for it.
    """

    statement: str
    lock: str
    idle: str


def limits(timeout: float) -> Limits:
    """Return the limits for calls that end within `timeout` seconds."""
    return Limits(_milliseconds(timeout * 0.9), _milliseconds(timeout * 0.8), _milliseconds(timeout + 5))


def startup_settings(options: Options) -> dict[str, str]:
    """Return what a connection of its own is opened with; what is lent is planned and limited as its user's others."""
    limit = limits(options.timeout)
    settings = {
        "application_name": application_name(options),
        **_OF_EACH,
        "idle_in_transaction_session_timeout": limit.idle,
    }
    if not options.lent:
        settings |= {**_PLANS, "statement_timeout": limit.statement, "lock_timeout": limit.lock}
    path = search_path(options)
    return settings if path is None else {**settings, "search_path": path}


def application_name(options: Options) -> str:
    """Return the name under which our connections are shown by the server."""
    return parse_qs(urlsplit(options.dsn).query).get("application_name", [APPLICATION])[-1]


def local_settings(options: Options, timeout: float, *, local: bool) -> dict[str, object]:
    """Return the parameters of `settings.sql`, which says the same where a pooler takes no settings at the start."""
    limit = limits(timeout)
    return {
        "search_path": search_path(options),
        "statement_timeout": limit.statement,
        "lock_timeout": limit.lock,
        "idle_timeout": limit.idle,
        "local": local,
        "planned": not options.lent,
    }


def search_path(options: Options) -> str | None:
    """Return where the tables are looked for; None when the role's own path is to stay."""
    if options.schema is None:
        return None
    quoted = options.schema.replace('"', '""')
    return f'"{quoted}", pg_temp'


def _milliseconds(seconds: float) -> str:
    return str(max(1, int(seconds * 1000)))
