"""How long each look takes with a million jobs in the store: `python -m benchmarks.studies.looks --store sqlite`.

Every look is a whole command in this process, from opening the store to the last byte printed; what is left out is the
start of Python and its imports. It prints Markdown.
"""

import argparse
import asyncio
import contextlib
import io
import os
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import windlass
from benchmarks.measuring.workload import chunks, percentile
from benchmarks.servers import postgres_databases
from benchmarks.servers.postgres_cluster import cluster
from windlass.cli.program import program

QUEUES: Final = ("email", "images", "reports", "imports")
KINDS: Final = 20
ERRORS: Final = 25
FILL: Final = 5_000
LIMIT: Final = 0.3
RARE: Final = "one-in-a-million"
LATER: Final = 9e6


def main() -> None:
    """Fill a store, look at it in every way, and say how long that took."""
    parser = argparse.ArgumentParser("python -m benchmarks.studies.looks", description=__doc__)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--markdown", type=Path)
    chosen = parser.parse_args()
    with TemporaryDirectory() as folder, store_url(chosen.store, Path(folder)) as url:
        began = time.perf_counter()
        ids = asyncio.run(_fill(url, chosen.jobs))
        if chosen.store == "postgres":
            postgres_databases.analyze_all(Path(folder))
        filled = time.perf_counter() - began
        lines = [_row(name, _times(url, words, chosen.times)) for name, words in _looks(ids).items()]
    text = _page(chosen.store, chosen.jobs, chosen.times, filled, lines)
    sys.stdout.write(text)
    if chosen.markdown is not None:
        chosen.markdown.write_text(text)


@contextmanager
def store_url(store: str, folder: Path) -> Generator[str]:
    """Give the URL of a store that is not there yet."""
    if store == "sqlite":
        yield f"sqlite:///{folder}/jobs.db"
        return
    with cluster() as server:
        postgres_databases.announce(server)
        yield postgres_databases.url_of(folder)


async def _fill(url: str, count: int) -> dict[str, str]:
    """Put `count` jobs in the store: most have succeeded, a tenth is dead, the rest waits; return some ids."""
    ids: dict[str, str] = {}
    async with windlass.connect(url, keep_succeeded=None, keep_dead=None, max_attempts=1) as client:
        rare = await client.enqueue("email", {"n": 0}, kind=RARE, tenant=RARE)
        for numbers in chunks(count * 8 // 10, FILL):
            await client.enqueue_many([_job(number) for number in numbers])
            await _work_off(client, numbers[0])
        for numbers in chunks(count * 2 // 10, FILL):
            jobs = [_job(number, delay=LATER if number % 4 == 0 else None) for number in numbers]
            done = await client.enqueue_many(jobs)
            ids["pending"] = done[-1].id
        [dead] = await client.dead_jobs(limit=1)
        ids["dead"], ids["rare"] = dead.id, rare.id
    return ids


def _job(number: int, delay: float | None = None) -> windlass.NewJob:
    queue, kind = QUEUES[number % len(QUEUES)], f"kind-{number % KINDS}"
    return windlass.NewJob(queue, {"n": number, "text": "x" * 60}, kind=kind, delay=delay)


async def _work_off(client: windlass.Client, number: int) -> None:
    """Settle what waits: seven of eight jobs succeed, and one is dead."""
    while claims := await client.claim_many(QUEUES, limit=1_000, lease=600):
        ends = (
            client.ack(claim) if place % 8 else client.dead_letter(claim, f"error {(number + place) % ERRORS}")
            for place, claim in enumerate(claims)
        )
        await asyncio.gather(*ends)


def _looks(ids: dict[str, str]) -> dict[str, Sequence[str]]:
    return {
        "jobs": ["jobs", "list"],
        "jobs of a queue": ["jobs", "list", "--queue", "images"],
        "jobs of a kind": ["jobs", "list", "--kind", "kind-7"],
        **{
            f"jobs that are {state}": ["jobs", "list", "--state", state]
            for state in ("pending", "scheduled", "running", "succeeded", "dead", "cancelled")
        },
        "jobs of a kind of which there is one, the oldest": ["jobs", "list", "--kind", RARE],
        "jobs of a tenant that has one": ["jobs", "list", "--tenant", RARE],
        "jobs by a text that is in one": ["jobs", "list", "--text", RARE],
        "jobs by a text that is in none": ["jobs", "list", "--text", "nowhere"],
        "jobs by an error": ["jobs", "list", "--error", "error 7"],
        "jobs by a type of error": ["jobs", "list", "--error-type", "error 7"],
        "jobs of a parent that has none": ["jobs", "list", "--parent", ids["rare"]],
        "jobs by a text in payloads that is in none": ["jobs", "list", "--payload-text", "nowhere"],
        "one job": ["jobs", "show", ids["dead"]],
        "stats": ["stats"],
        "queues": ["queues"],
        "dead": ["dead"],
        "dead of a queue": ["dead", "--queue", "reports"],
        "dead by error": ["dead", "--group"],
        "why, of a job in line": ["why", ids["pending"]],
        "why, of a dead job": ["why", ids["dead"]],
        "servers": ["servers"],
    }


def _times(url: str, words: Sequence[str], times: int) -> list[float]:
    """Return how many milliseconds each of so many calls took, after one that loads what it needs."""
    return [_time(url, words) for _ in range(times + 1)][1:]


def _time(url: str, words: Sequence[str]) -> float:
    printed = io.StringIO()
    began = time.perf_counter()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        program([*words, "--url", url, "--json"], prog_name="windlass")
    took = (time.perf_counter() - began) * 1e3
    if not printed.getvalue().startswith(("{", "[")):
        message = f"{' '.join(words)} told nothing"
        raise RuntimeError(message)
    return took


def _row(name: str, took: list[float]) -> str:
    over = "" if percentile(took, 95) <= LIMIT * 1e3 else " **over**"
    return f"| {name} | {percentile(took, 50):.0f} | {percentile(took, 95):.0f}{over} | {max(took):.0f} |"


def _page(store: str, jobs: int, times: int, filled: float, lines: Sequence[str]) -> str:
    heads = [
        f"# Looks at {jobs:,} jobs on {store}",
        "",
        f"Milliseconds of {times} calls each, from opening the store to the last byte; the limit is {LIMIT * 1e3:.0f}.",
        f"Python {sys.version.split()[0]}, {os.cpu_count()} cores; filling the store took {filled:.0f} s.",
        "",
        "| | p50 | p95 | slowest |",
        "|---|--:|--:|--:|",
    ]
    return "\n".join([*heads, *lines, ""])


if __name__ == "__main__":
    main()
