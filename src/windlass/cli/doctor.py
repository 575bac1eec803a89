"""`windlass doctor`: looks for what is wrong, and says what to do."""

import asyncio
from typing import Final

import click

from windlass.cli.options import output_options, store_argument, store_options
from windlass.cli.output import BAD, FAINT, GOOD, POOR, Cell, print_json, print_paragraph, say
from windlass.cli.reach import LET_IT_BE_MADE, Choice, Reached, dead_after, reached, settings_of
from windlass.client.checkup import checkup, worst
from windlass.core.errors import (
    Fenced,
    NotAllowed,
    SchemaMissing,
    SchemaTooNew,
    SchemaTooOld,
    StoreCorrupt,
    StoreFull,
    StoreOwned,
    StoreReadOnly,
    StoreUnavailable,
)
from windlass.core.looks import Finding
from windlass.exit_codes import ExitCode, exit_code_of
from windlass.system import SystemClock

MARKS: Final = {"ok": Cell("ok", GOOD), "warning": Cell("warning", POOR), "error": Cell("ERROR", BAD)}


@click.command()
@click.option("--strict", is_flag=True, help="End with 1 for warnings too.")
@store_argument
@store_options
@output_options
def doctor(*, strict: bool, app: str | None, url: str | None, as_json: bool) -> None:
    """Look for what is wrong, and say what to do.

    It checks the store, its settings, versions, clocks, leases, servers, queues, kinds, jobs that wait long, dead jobs
    and schedules, and changes nothing. Ends with 1 when it finds an error, with --strict also for a warning; with 5
    when the store cannot be reached.
    """
    findings, unreached = _found(Choice(app, url))
    level = worst(findings)
    if as_json:
        print_json({"level": level, "findings": [finding._asdict() for finding in findings]})
    else:
        _print(findings)
    if unreached is not None:
        raise click.exceptions.Exit(exit_code_of(unreached)) from unreached
    if level == "error" or (strict and level == "warning"):
        raise click.exceptions.Exit(ExitCode.FAILED)


def _found(choice: Choice) -> tuple[list[Finding], StoreUnavailable | None]:
    """Return what was found, and what the store said if it did not let itself be looked at."""
    try:
        return asyncio.run(_look(choice)), None
    except StoreUnavailable as error:
        # advice has a line of its own here
        return [Finding("store", "error", str(error).removesuffix(LET_IT_BE_MADE), _advice(error))], error


def _advice(error: StoreUnavailable) -> str:
    match error:
        case SchemaMissing():
            return "look whether the URL is right; the first enqueue, or windlass migrate, makes what is missing"
        case SchemaTooOld():
            return "bring it up to this release: windlass migrate"
        case SchemaTooNew():
            return "upgrade windlass here to the release that the servers run"
        case StoreCorrupt():
            return "stop all processes, keep a copy of what is there, and restore it from a backup"
        case StoreFull():
            return "make room, then look again: what was accepted is kept"
        case StoreReadOnly() | NotAllowed():
            return "look at the rights of this user, role or token"
        case StoreOwned() | Fenced():
            return "look again when the other process has stopped, or through windlass serve"
        case _:
            return (
                "see that it runs and can be reached from this machine: host, port, user, password and TLS in the URL, "
                "or the folder of its file (windlass config shows which is used)"
            )


async def _look(choice: Choice) -> list[Finding]:
    async with reached(choice) as found:
        settings = settings_of(choice, found)
        return [
            _settings(settings.unknown),
            *_app(found),
            *await checkup(found.client.store, dead_after=dead_after(settings), clock=SystemClock().now),
        ]


def _settings(unknown: tuple[str, ...]) -> Finding:
    if not unknown:
        return Finding("settings", "ok", "every setting can be read")
    return Finding("settings", "warning", "; ".join(unknown), "mend the names of these variables, or unset them")


def _app(found: Reached) -> list[Finding]:
    app = found.app
    if app is None:
        return []
    counts = {
        "kinds": len({each.kind for each in app.handlers.values()}),
        "queues": len(app.queues),
        "schedules": len(app.schedules),
    }
    told = ", ".join(f"{count} {what if count != 1 else what[:-1]}" for what, count in counts.items())
    return [Finding("app", "ok", f"{app.name!r}: {told}")]


def _print(findings: list[Finding]) -> None:
    widest = max(len(finding.name) for finding in findings)
    for name, level, message, advice in findings:
        print_paragraph([MARKS[level], Cell(name, FAINT)], [8, widest], message)
        if advice is not None:
            print_paragraph([Cell(""), Cell("")], [8, widest], f"-> {advice}")
    counts = {level: sum(finding.level == level for finding in findings) for level in ("error", "warning")}
    if not any(counts.values()):
        say("all is well", GOOD)
        return
    said = [f"{count} {level}{'s' * (count > 1)}" for level, count in counts.items() if count]
    say(" and ".join(said), BAD if counts["error"] else POOR)
