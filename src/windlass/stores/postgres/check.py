"""What `doctor` looks at in a Postgres store."""

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from windlass.core.looks import Finding
from windlass.core.queue_settings import SettingsRow
from windlass.kit.moves.looking import of_move, of_settings
from windlass.stores.postgres.migrate import SCHEMA
from windlass.stores.postgres.moves.departure import moved_to
from windlass.stores.postgres.options import Options
from windlass.stores.postgres.work import Row, Statement, Work

OLDEST, NEWEST = 15, 18
LONG: Final = timedelta(minutes=5)
"""How long a snapshot or a transaction may be held open before it is worth a word."""
MANY_TRANSACTIONS: Final = 100_000
"""How far behind a snapshot may be, where it is not known how long it has been held."""
MANY_DEAD_ROWS: Final = 100_000
MANY_CHANGES: Final = 100_000
MUCH_LOG: Final = 2**30
NEARLY_ALL: Final = 0.9


class Server(NamedTuple):
    """The columns of `check_server.sql`."""

    release: int
    version: str
    fsync: bool
    synchronous_commit: str
    has_standbys: bool
    autovacuum: bool
    is_standby: bool
    connections: int
    most_connections: int
    notifications: float


def check(options: Options, *, pooled: bool, hears: bool | None = None) -> Work[list[Finding]]:
    """Look over the server, its settings and the tables; `hears` tells whether a listener of ours is connected."""
    [row] = yield Statement("check_server")
    server = Server(*row)
    return [
        _version(server),
        _role(server),
        _durability(server),
        (yield from _schema()),
        *of_move((yield from moved_to())),
        *(yield from _settings()),
        (yield from _snapshots()),
        (yield from _prepared()),
        (yield from _slots()),
        (yield from _vacuum(server)),
        (yield from _counts()),
        _connections(server),
        _notifications(server, options, pooled=pooled, hears=hears),
    ]


def _settings() -> Work[list[Finding]]:
    rows = yield Statement("check_settings")
    return of_settings((queue, SettingsRow(*row)) for queue, *row in rows)


def _version(server: Server) -> Finding:
    if OLDEST <= server.release <= NEWEST:
        return Finding("server", "ok", f"Postgres {server.version}")
    told = f"Postgres {server.version}: Windlass is tested with {OLDEST} to {NEWEST}"
    advice = "upgrade the server" if server.release < OLDEST else "look for a newer release of windlass"
    return Finding("server", "warning", told, advice)


def _role(server: Server) -> Finding:
    if not server.is_standby:
        return Finding("role", "ok", "a primary, which takes writes")
    return Finding("role", "error", "a standby, which takes no writes", "let the URL lead to the primary")


def _durability(server: Server) -> Finding:
    if not server.fsync:
        return Finding(
            "durability",
            "warning",
            "fsync=off: a power cut may damage the whole database",
            "set fsync=on in postgresql.conf, unless all of it may be lost",
        )
    setting = server.synchronous_commit
    if setting == "off":
        told = "synchronous_commit=off: the last commits before a crash may be lost"
    elif setting in ("local", "remote_write") and server.has_standbys:
        told = f"synchronous_commit={setting}: the last commits before a failover may be lost"
    else:
        return Finding("durability", "ok", f"synchronous_commit={setting}: what was acknowledged survives a power cut")
    return Finding("durability", "warning", told, "alter role ... set synchronous_commit = on")


def _schema() -> Work[Finding]:
    rows = yield Statement("schema_version")
    known = {row[0]: row[1] for row in rows}
    version = known.get("schema", "unknown")
    return Finding("schema", "ok", f"version {version} of {SCHEMA}")


def _snapshots() -> Work[Finding]:
    rows = yield Statement("check_snapshots", {"age": LONG})
    if not rows:
        return Finding("snapshots", "ok", f"no snapshot is held for more than {_shown(LONG)}")
    pid, role, application, state, kind, since, held, behind = rows[0]
    who = f"process {pid} ({application or kind or 'hidden'}, role {role or 'hidden'})"
    if since is None:
        return _hidden_snapshot(who, behind) if kind is None else _standbys_snapshot(who, behind)
    return Finding(
        "snapshots",
        "warning",
        f"{who} holds a snapshot since {_time(since)}, {_shown(held)} ago, and is {state or 'at work'}: rows that are "
        "gone cannot be removed meanwhile, and tables and indexes grow",
        f"end its transaction, or end it: select pg_terminate_backend({pid})",
    )


def _hidden_snapshot(who: str, behind: int) -> Finding:
    return _snapshot_of_an_age(
        who, behind, "grant pg_read_all_stats to the role of the URL, to see since when and in which state"
    )


def _standbys_snapshot(who: str, behind: int) -> Finding:
    """Judge what a standby tells that it still reads (`hot_standby_feedback`), which has no beginning here."""
    return _snapshot_of_an_age(
        f"a standby, by {who},", behind, "end the long transaction on the standby: pg_stat_activity shows it there"
    )


def _snapshot_of_an_age(who: str, behind: int, advice: str) -> Finding:
    if behind < MANY_TRANSACTIONS:
        return Finding("snapshots", "ok", f"{who} holds a snapshot, {behind:,} transactions old", advice)
    told = f"{who} holds a snapshot that is {behind:,} transactions old: rows that are gone cannot be removed meanwhile"
    return Finding("snapshots", "warning", told, advice)


def _prepared() -> Work[Finding]:
    rows = yield Statement("check_prepared", {"age": LONG})
    if not rows:
        return Finding("prepared", "ok", f"no prepared transaction is older than {_shown(LONG)}")
    gid, owner, since = rows[0]
    return Finding(
        "prepared",
        "warning",
        f"the prepared transaction {gid!r} of role {owner} is open since {_time(since)}: it holds its locks, and rows "
        "that are gone cannot be removed meanwhile",
        f"commit prepared '{gid}', or rollback prepared '{gid}'",
    )


def _slots() -> Work[Finding]:
    rows = yield Statement("check_slots")
    for row in rows:
        if (finding := _slot(row)) is not None:
            return finding
    return Finding("slots", "ok", "no replication slot keeps much for its reader")


def _slot(row: Row) -> Finding | None:
    name, active, behind, log = row
    if log < MUCH_LOG * (10 if active else 1) and behind < MANY_TRANSACTIONS:
        return None
    reader = "has a reader that does not keep up" if active else "has no reader"
    return Finding(
        "slots",
        "warning",
        f"replication slot {name!r} {reader}: it keeps {log / 2**30:.1f} GiB of the write-ahead log, and rows of the "
        f"last {behind:,} transactions",
        "let its reader catch up" if active else f"start its reader, or select pg_drop_replication_slot('{name}')",
    )


def _vacuum(server: Server) -> Work[Finding]:
    if not server.autovacuum:
        return Finding("vacuum", "warning", "autovacuum=off: rows that are gone are never removed", "set autovacuum=on")
    rows = yield Statement("check_vacuum")
    if not rows:
        return Finding("vacuum", "ok", "nothing is known of windlass_job yet")
    live, dead, last = rows[0]
    told = f"windlass_job has {dead:,} rows that are gone beside {live:,}, last removed {_last(last)}"
    if dead < MANY_DEAD_ROWS or dead < 2 * live:
        return Finding("vacuum", "ok", told)
    advice = "see what is said of snapshots, prepared transactions and slots; then: vacuum windlass_job"
    return Finding("vacuum", "warning", told, advice)


def _counts() -> Work[Finding]:
    [(changes,)] = yield Statement("check_counts", {"limit": MANY_CHANGES})
    if changes < MANY_CHANGES:
        return Finding("counts", "ok", f"{changes:,} changes are to be added to the counts")
    return Finding(
        "counts",
        "warning",
        f"{MANY_CHANGES:,} changes or more are to be added to the counts: looks at them take long",
        "start a server, which adds them up",
    )


def _connections(server: Server) -> Finding:
    told = f"{server.connections:,} connections of at most {server.most_connections:,}"
    if server.connections < NEARLY_ALL * server.most_connections:
        return Finding("connections", "ok", told)
    advice = "raise max_connections, put a pooler in front, or lower ?connections= in the URL"
    return Finding("connections", "warning", told, advice)


def _notifications(server: Server, options: Options, *, pooled: bool, hears: bool | None) -> Finding:
    if not options.notify:
        return Finding("notifications", "ok", "?notify=off: others are looked for by polling")
    if pooled:
        return Finding(
            "notifications",
            "ok",
            "a pooler in transaction mode hands no notification on: others are looked for by polling",
            "give servers a URL that leads to Postgres itself, if they shall start jobs within milliseconds",
        )
    if server.notifications > 1 - NEARLY_ALL:
        return Finding(
            "notifications",
            "warning",
            f"the queue of notifications is full to {server.notifications:.0%}: a session that listens stays in a "
            "transaction",
            "find it by select * from pg_stat_activity where state = 'idle in transaction', and end it",
        )
    if hears is False:
        return Finding(
            "notifications",
            "warning",
            "the connection that listens is lost at the moment: others are looked for by polling",
            "see the log for why; it is opened again by itself",
        )
    return Finding("notifications", "ok", "other processes are told within milliseconds")


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _last(at: datetime | None) -> str:
    return "never" if at is None else f"at {_time(at)}"


def _shown(span: timedelta) -> str:
    minutes = int(span.total_seconds()) // 60
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h"  # noqa: PLR2004 - two hours
