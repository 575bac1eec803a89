"""The command line of the benchmarks."""

import argparse
import signal
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import contestants
from benchmarks.measuring import machine
from benchmarks.measuring.contestant import Trial
from benchmarks.measuring.measurements import ALL_OURS, PARTS
from benchmarks.measuring.plan import plan
from benchmarks.measuring.run import Finding, Runner
from benchmarks.reporting import markdown, terminal
from benchmarks.reporting.report import Report
from benchmarks.reporting.summary import summarise
from benchmarks.servers import http_serving, postgres_databases, redis_databases
from benchmarks.servers.postgres_cluster import cluster
from benchmarks.servers.redis_server import server

LARGE = "large"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the arguments ask for; return the exit code.

    It is 1 when a measurement failed or Windlass itself could not be run. A missed floor or a missing peer is a note.
    """
    options = _parser().parse_args(arguments)
    # so that a stopped run deletes its files and ends its children as well
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with _engine(options) as engine, TemporaryDirectory(prefix="windlass-bench-", dir=options.directory) as folder:
        report = _run(options, Path(folder), engine)
    _write(report, options)
    failed = any(finding.failure is not None for finding in report.findings)
    return int(failed or any(one.name in ALL_OURS for one in report.missing))


@contextmanager
def _engine(options: argparse.Namespace) -> Generator[dict[str, str]]:
    """Run a server where the store needs one; yields what the report says of it."""
    match options.store:
        case "postgres":
            with cluster(programs=options.programs, directory=options.directory) as postgres:
                postgres_databases.announce(postgres)
                yield {"Postgres": postgres.ask("show server_version")}
        case "redis":
            with server(programs=options.programs, directory=options.directory) as redis:
                redis_databases.announce(redis)
                yield redis.version()
        case "http":
            with TemporaryDirectory(prefix="windlass-bench-") as folder:
                http_serving.announce(Path(folder))
                yield {name: version(name) for name in ("starlette", "uvicorn", "httptools")}
        case _:
            yield {}


def _run(options: argparse.Namespace, folder: Path, engine: dict[str, str]) -> Report:
    # before all else: each measurement loads the code anew, and it may be another one by the end
    described = machine.describe(folder)
    trial = Trial(str(folder), options.jobs, options.seconds, options.pickups, options.rows)
    runner = Runner(trial)
    known = [runner.introduce(name) for name in options.contestants or contestants.STORES[options.store]]
    present = [one for one in known if one.missing is None]
    if not present:
        sys.exit("\n".join(f"{one.name} cannot be run: {one.missing}" for one in known))
    steps = plan(_parts(options), present, repeat=options.repeat)
    findings: list[Finding] = []
    for finding in runner.take(steps, {one.name: one for one in present}):
        findings.append(finding)
        _say(f"{len(findings)}/{len(steps)} {finding.contestant} {finding.measurement} {_gist(finding)}")
    return Report(
        machine=described | engine,
        sizes={"repetitions": options.repeat, "jobs": options.jobs, "rows of a large store": options.rows},
        contestants=present,
        missing=[one for one in known if one.missing is not None],
        rows=summarise(findings, present),
        findings=findings,
    )


def _parts(options: argparse.Namespace) -> set[str]:
    parts = set(options.only or (part for part in PARTS if part != LARGE))
    return parts | {LARGE} if options.large else parts


def _gist(finding: Finding) -> str:
    if finding.answer is None:
        return f"FAILED: {finding.failure}"
    rate = finding.answer.outcome.figures.get("rate")
    return "" if rate is None else f"{rate:,.0f}/s"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _write(report: Report, options: argparse.Namespace) -> None:
    if options.json:
        _write_file(options.json, report.json())
    if options.markdown:
        _write_file(options.markdown, markdown.render(report).encode())
    if sys.stdout.isatty():
        terminal.show(report)
    else:
        print(markdown.render(report), end="")


def _write_file(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", type=_names(PARTS), help=f"parts, by comma: {','.join(PARTS)} (all but large)")
    parser.add_argument("--large", action="store_true", help="also drains of stores with a million rows")
    parser.add_argument(
        "--store",
        choices=list(contestants.STORES),
        default="sqlite",
        help="whose contestants: sqlite, postgres, redis, http, slatedb (sqlite)",
    )
    parser.add_argument(
        "--programs", type=Path, help="the folder of another Postgres' or Redis' programs (those of the wheel)"
    )
    parser.add_argument(
        "--contestants",
        type=_names(contestants.PLACES),
        help=f"by comma: {','.join(contestants.PLACES)} (all of the store)",
    )
    parser.add_argument("--repeat", type=_positive, default=3, help="interleaved repetitions (3)")
    parser.add_argument("--jobs", type=_positive, default=20_000, help="jobs of one measurement (20000)")
    parser.add_argument("--seconds", type=float, default=3.0, help="limit of timing an enqueue; a drain has 2 x (3)")
    parser.add_argument("--pickups", type=_positive, default=80, help="pick-ups per repetition (80)")
    parser.add_argument("--rows", type=_positive, default=1_000_000, help="rows of a large store (1000000)")
    parser.add_argument("--directory", type=Path, help="where temporary files go; a real disk (the system's place)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every finding to a file")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the report to a file")
    return parser


def _names(known: Sequence[str] | dict[str, str]) -> Callable[[str], list[str]]:
    def names(text: str) -> list[str]:
        chosen = text.split(",")
        unknown = [name for name in chosen if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
        return chosen

    return names


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return value
