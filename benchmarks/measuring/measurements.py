"""The rows of the report: what is measured, in which unit, and what Windlass has to reach."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

CLIENTS = {
    "sqlite": "windlass",
    "memory": "windlass-memory",
    "postgres": "windlass-postgres",
    "redis": "windlass-redis",
    "http": "windlass-http",
    "slatedb": "windlass-slatedb",
}
SERVERS = {store: client.replace("windlass", "windlass-server") for store, client in CLIENTS.items()}
ALL_OURS = frozenset({*CLIENTS.values(), *SERVERS.values()})


class Unit(StrEnum):
    """How a figure is written, and whether more of it is better."""

    RATE = "jobs/s"
    MILLISECONDS = "ms"
    SHARE = "of the rate without"
    TIMES = "times"
    MICROSECONDS = "µs"
    MEBIBYTES = "MiB"

    @property
    def more_is_better(self) -> bool:
        """False for durations and sizes."""
        return self in {Unit.RATE, Unit.SHARE, Unit.TIMES}


@dataclass(frozen=True, slots=True)
class Target:
    """What a contestant of ours must reach now, and what it should reach one day.

    With `over_peer` it must also be so many times as good as the best peer of the run.
    """

    floor: float
    goal: float | None = None
    over_peer: float | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """One row: the name of a figure in an outcome, or a percentile of its samples.

    With `judged_only` it is a row of those alone that have a target; others have it in a note.
    """

    title: str
    name: str
    unit: Unit = Unit.RATE
    percent: int | None = None
    targets: Mapping[str, Target] = field(default_factory=dict[str, Target])
    judged_only: bool = False


@dataclass(frozen=True, slots=True)
class Measurement:
    """One thing that a contestant does in a process of its own, and the figures it gives."""

    name: str
    part: str
    figures: tuple[Figure, ...]


def _rate(title: str, name: str, part: str, **targets: Target) -> Measurement:
    named = {CLIENTS[store]: target for store, target in targets.items()}
    return Measurement(name, part, (Figure(title, "rate", targets=named),))


def _drain(title: str, name: str, **targets: Target) -> Measurement:
    named = {who.replace("_", "-"): target for who, target in targets.items()}
    cpu = _of_servers(sqlite=Target(35), memory=Target(20), postgres=Target(30, 14), redis=Target(50, 25))
    return Measurement(
        name,
        "claim",
        (
            Figure(f"drain, {title}", "rate", targets=named),
            Figure("its processor time per job", "cpu_us", Unit.MICROSECONDS, targets=cpu, judged_only=True),
            Figure(
                "the most memory it held", "peak_mib", Unit.MEBIBYTES, targets=_served(Target(60), slatedb=Target(90))
            ),
            Figure("processor time of the process that serves, per job", "serving_cpu_us", Unit.MICROSECONDS),
            Figure(
                "the most memory that one held", "serving_mib", Unit.MEBIBYTES, targets=_of_servers(http=Target(60))
            ),
        ),
    )


def _large(title: str, name: str) -> Measurement:
    return Measurement(
        name,
        "large",
        (
            Figure(f"drain on a store full of {title}", "kept", Unit.SHARE, targets=_alike(Target(0.9), but=("http",))),
            Figure("its rate", "rate"),
            Figure("the rate in turns on an empty store", "rate_empty"),
        ),
    )


def _alike(target: Target, *, but: Collection[str] = (), **others: Target) -> dict[str, Target]:
    """Return one target for client and server on every store but memory and those that have none.

    `others` name stores that have their own.
    """
    shared = [store for store in CLIENTS if store not in {"memory", *but}]
    return {by[store]: others.get(store, target) for by in (CLIENTS, SERVERS) for store in shared}


def _of_servers(**targets: Target) -> dict[str, Target]:
    return {SERVERS[store]: target for store, target in targets.items()}


def _served(target: Target, *, but: Collection[str] = ("memory",), **others: Target) -> dict[str, Target]:
    """Return one target for the server on every store but those that have none, or their own in `others`."""
    return {server: others.get(store, target) for store, server in SERVERS.items() if store not in but}


def _owned(target: Target) -> dict[str, Target]:
    """Return one target for client and server on the store that one process owns."""
    return {CLIENTS["slatedb"]: target, SERVERS["slatedb"]: target}


def _called(target: Target, *, but: Collection[str] = ("memory",)) -> dict[str, Target]:
    """Return one target for the client on every store but those that have none."""
    return {client: target for store, client in CLIENTS.items() if store not in but}


MS = Unit.MILLISECONDS

MEASUREMENTS = (
    _rate(
        "enqueue one by one, awaited",
        "enqueue_one",
        "enqueue",
        sqlite=Target(3_500, 5_000),
        memory=Target(60_000),
        postgres=Target(2_500, 3_400),
        redis=Target(5_000, 8_000),
        http=Target(1_500, 3_000),
    ),
    _rate(
        "enqueue by 64 callers at once",
        "enqueue_callers",
        "enqueue",
        sqlite=Target(25_000, 60_000),
        postgres=Target(15_000, 40_000),
        redis=Target(20_000, 50_000),
        http=Target(4_000, 10_000),
        slatedb=Target(4_000, 7_000),
    ),
    _rate(
        "enqueue_many, 1,000 at once",
        "enqueue_many",
        "enqueue",
        sqlite=Target(100_000, 200_000),
        memory=Target(200_000),
        postgres=Target(60_000, 120_000),
        redis=Target(50_000, 100_000),
        http=Target(20_000, 50_000),
        slatedb=Target(5_000, 9_000),
    ),
    _drain(
        "records deleted at the ack",
        "claim_deleted",
        windlass=Target(25_000, 45_000),
        windlass_memory=Target(50_000, 120_000),
        windlass_server=Target(25_000, over_peer=1.7),
        windlass_server_memory=Target(50_000),
        windlass_server_postgres=Target(30_000, 55_000, over_peer=1.8),
        windlass_server_redis=Target(15_000, 35_000, over_peer=3),
        windlass_server_http=Target(6_000, 15_000),
        windlass_server_slatedb=Target(3_000, 8_000),
    ),
    _drain(
        "finished records kept",
        "claim_kept",
        windlass=Target(25_000, 50_000),
        windlass_memory=Target(40_000, 100_000),
        windlass_server=Target(25_000, over_peer=1.7),
        windlass_server_memory=Target(40_000),
        windlass_server_postgres=Target(22_000, 40_000),
        windlass_server_redis=Target(12_000, 28_000),
        windlass_server_http=Target(5_000, 12_000),
        windlass_server_slatedb=Target(2_500, 6_000),
    ),
    Measurement(
        "claim_latency",
        "claim",
        (
            Figure(
                "claim of 20 during a drain, p99",
                "p99",
                MS,
                targets=_called(Target(2.5), but=("memory", "http", "slatedb")),
            ),
            Figure("its first tenth, p99", "p99_first", MS),
            Figure("its last tenth, p99", "p99_last", MS),
            Figure("its first tenth, p50", "p50_first", MS),
            Figure("its last tenth, p50", "p50_last", MS),
        ),
    ),
    Measurement(
        "end_to_end",
        "server",
        (
            Figure(
                "enqueued by one process, worked by another",
                "rate",
                targets=_of_servers(
                    sqlite=Target(15_000), postgres=Target(18_000, 35_000), redis=Target(10_000, 25_000)
                ),
            ),
        ),
    ),
    Measurement(
        "two_processes",
        "server",
        (
            Figure(
                "windlass worker: two processes over one, jobs of 0.3 ms",
                "gain",
                Unit.TIMES,
                targets=_served(Target(1.5), but=("memory", "http", "slatedb")),
            ),
            Figure("the rate of one", "rate_one"),
            Figure("the rate of two", "rate_two"),
        ),
    ),
    Measurement(
        "pickup",
        "pickup",
        (
            Figure(
                "pick-up by an idle process, p50",
                "pickup",
                MS,
                50,
                targets=_alike(
                    Target(3, 1), but=("slatedb",), postgres=Target(3, 1.5), redis=Target(1.5, 1), http=Target(4, 2)
                ),
            ),
            Figure("pick-up by an idle process, p95", "pickup", MS, 95),
            Figure(
                "pick-up by an idle process, p99",
                "pickup",
                MS,
                99,
                targets=_alike(
                    Target(15, 4), but=("slatedb",), postgres=Target(6, 4), redis=Target(3, 2), http=Target(15, 8)
                ),
            ),
        ),
    ),
    Measurement(
        "pickup_inside",
        "pickup",
        (
            Figure("pick-up in the process that enqueues, p50", "pickup", MS, 50, targets=_owned(Target(15))),
            Figure("pick-up in the process that enqueues, p95", "pickup", MS, 95),
            Figure("pick-up in the process that enqueues, p99", "pickup", MS, 99, targets=_owned(Target(40))),
        ),
    ),
    Measurement(
        "delayed",
        "pickup",
        (
            Figure("start of a delayed job after its time, p50", "late", MS, 50),
            Figure("start of a delayed job after its time, p95", "late", MS, 95),
            Figure(
                "start of a delayed job after its time, p99",
                "late",
                MS,
                99,
                targets=_served(Target(50), but=()),
            ),
        ),
    ),
    Measurement(
        "on_schedule",
        "pickup",
        (
            Figure("start of a schedule's job after its time, p50", "late", MS, 50),
            Figure("start of a schedule's job after its time, p95", "late", MS, 95),
            Figure(
                "start of a schedule's job after its time, p99",
                "late",
                MS,
                99,
                targets=_served(Target(50), but=()),
            ),
        ),
    ),
    Measurement(
        "cold_open",
        "server",
        (
            Figure("process start to ready, 20,000 finished jobs", "ready", MS, targets=_served(Target(600))),
            Figure("of it the opening of the store", "open", MS),
            Figure("the first claim after it", "first_claim", MS, targets=_of_servers(slatedb=Target(50))),
        ),
    ),
    Measurement(
        "import",
        "import",
        (
            Figure("import, over a bare interpreter", "import", MS, targets=_called(Target(100))),
            Figure("import and first use, over a bare interpreter", "first_use", MS),
        ),
    ),
    _large("waiting jobs", "large_waiting"),
    _large("scheduled jobs", "large_scheduled"),
    _large("finished records", "large_finished"),
    _large("jobs of other kinds ahead", "large_kinds"),
    Measurement(
        "large_snapshot",
        "large",
        (
            Figure(
                "drain after half of the rows, dead ones kept by an old snapshot",
                "kept",
                Unit.SHARE,
                targets=_alike(Target(0.9), but=("http",)),
            ),
            Figure("its rate at the end", "rate_last"),
            Figure("its rate at the beginning", "rate_first"),
            Figure("the rate in turns without a snapshot, at the end", "rate_free_last"),
            Figure("the rate in turns without a snapshot, at the beginning", "rate_free_first"),
        ),
    ),
)

PARTS = tuple(dict.fromkeys(measurement.part for measurement in MEASUREMENTS))
