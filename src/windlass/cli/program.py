"""The program `windlass`: its commands, and how each error ends it."""

import difflib
import io
import os
import re
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final, NoReturn

import click

from windlass.cli.errors import NameNotFound
from windlass.cli.lazy_group import LazyGroup, Place
from windlass.core.errors import AppNotLoaded, WindlassError
from windlass.core.escaped import escaped
from windlass.exit_codes import ExitCode, exit_code_of
from windlass.parent.output import let_go_of_output

RUN, SEE, STEER, SERVE, STORES, SHELL = (
    "Run",
    "See",
    "See and steer",
    "Serve",
    "Stores and settings",
    "Try, complete, read",
)

COMMANDS: Final = {
    "worker": Place("windlass.cli.worker", "Work the queues of an app until it is stopped.", RUN),
    "enqueue": Place("windlass.cli.enqueue", "Put a job in line.", RUN),
    "jobs": Place("windlass.cli.jobs", "See jobs, and change their course.", STEER),
    "dead": Place("windlass.cli.dead", "See the dead jobs, retry or delete them.", STEER),
    "queues": Place("windlass.cli.queues", "See the queues, pause and resume them.", STEER),
    "schedules": Place("windlass.cli.schedules", "See and steer the schedules.", STEER),
    "top": Place("windlass.cli.top.command", "Watch queues, jobs and servers live, and steer them.", STEER),
    "why": Place("windlass.cli.why", "Tell why a job has not run, where it is, or how it ended.", SEE),
    "stats": Place("windlass.cli.stats", "Count the jobs by state, in all, and minute by minute.", SEE),
    "servers": Place("windlass.cli.servers", "List the processes that work on the store.", SEE),
    "audit": Place("windlass.cli.audit", "List what people did, the newest first.", SEE),
    "doctor": Place("windlass.cli.doctor", "Look for what is wrong, and say what to do.", SEE),
    "serve": Place("windlass.cli.serve", "Serve a store over HTTP, for any machine and language.", SERVE),
    "dashboard": Place("windlass.cli.dashboard", "Watch and steer a store in a browser.", SERVE),
    "token": Place("windlass.cli.token", "Make, list and remove the tokens of `windlass serve`.", SERVE),
    "config": Place("windlass.cli.config", "Show every setting and where it came from.", STORES),
    "migrate": Place("windlass.cli.migrate", "Bring the schema of a store up to this release.", STORES),
    "move": Place("windlass.cli.move", "Take what waits in one store to another.", STORES),
    "bench": Place("windlass.cli.bench", "Take a quick look at what this machine and a store reach.", SHELL),
    "demo": Place("windlass.cli.demo", "Watch a shop's jobs survive processes that are killed.", SHELL),
    "completion": Place("windlass.cli.completion", "Print what lets a shell complete `windlass`.", SHELL),
    "help": Place("windlass.cli.help", "Show the help of a command.", SHELL),
}
"""In the order in which they are listed; each summary is the first line of its command's help."""
COMPLETING: Final = "_WINDLASS_COMPLETE"
"""The environment variable by which a shell asks how a command goes on."""
_URL: Final = re.compile(r"[^\s('\"]+://[^\s)'\"]*")


class Program(LazyGroup):
    """Every error of a command ends it with one line on stderr, and with the exit code that tells what it was."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,  # noqa: ANN401
    ) -> click.Context:
        """Read what stands before the command."""
        with _told():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - as click's
        """Run a command, up to the last byte of what it prints."""
        with _told():
            done = super().invoke(ctx)
            sys.stdout.flush()
            return done


@click.command(
    cls=Program,
    places=COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True},
    epilog="`windlass COMMAND --help` tells more of one. Settings also come from WINDLASS_... and pyproject.toml.",
)
@click.version_option(None, "-V", "--version", package_name="windlass", message="windlass %(version)s")
@click.pass_context
def program(ctx: click.Context) -> None:
    """Windlass: a durable background-job queue."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main() -> None:
    """Run the command line and leave."""
    for stream in (sys.stdout, sys.stderr):
        # text that the terminal has no letters for is shown by its number, and ends nothing
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        program(prog_name="windlass")
    finally:
        if COMPLETING in os.environ:
            # a store that did not answer in time is waited for by nobody
            let_go_of_output()
            os._exit(0)


def debugging() -> bool:
    """Whether errors are shown with their tracebacks."""
    context = click.get_current_context(silent=True)
    asked = context is not None and bool(context.find_root().meta.get("windlass.debug"))
    return asked or os.environ.get("WINDLASS_DEBUG", "").strip().lower() in ("1", "on", "yes", "true")


@contextmanager
def _told() -> Generator[None]:
    """Turn what a command raises into what the user sees of it."""
    try:
        yield
    except WindlassError as error:
        if debugging():
            _show(traceback.format_exc())
        elif isinstance(error, AppNotLoaded) and error.traceback:
            _show(error.traceback)
        _end(str(error), exit_code_of(error), error)
    except click.NoSuchOption as error:
        _end(_unknown_option(error), ExitCode.WRONG_USAGE, error)
    except NameNotFound as error:
        _end(error.message, ExitCode.NOT_FOUND, error)
    except click.UsageError as error:
        where = f" (see {error.ctx.command_path} --help)" if error.ctx is not None else ""
        _end(_wrong_usage(error) + where, ExitCode.WRONG_USAGE, error)
    except KeyboardInterrupt as error:
        raise click.exceptions.Exit(ExitCode.INTERRUPTED) from error
    except BrokenPipeError as error:
        let_go_of_output()
        raise click.exceptions.Exit(ExitCode.BROKEN_PIPE) from error
    except OSError as error:
        # what was printed may not be there: a full disk behind stdout
        let_go_of_output()
        if debugging():
            _show(traceback.format_exc())
        _end(str(error), ExitCode.FAILED, error)


def _show(told: str) -> None:
    click.echo(escaped(told, keep="\n"), file=sys.stderr, nl=False)


def _end(message: str, code: ExitCode, cause: Exception) -> NoReturn:
    """Say in one line what happened; what a store says may hold anything, and the terminal obeys none of it."""
    click.echo(f"error: {escaped(message)}", file=sys.stderr)
    raise click.exceptions.Exit(code) from cause


def _wrong_usage(error: click.UsageError) -> str:
    message = _plain(error.format_message())
    if "://" not in message:
        return message
    from windlass.config.masked import masked  # noqa: PLC0415 - it brings all settings along

    message = _URL.sub(lambda found: masked(found[0]), message)
    options = [] if error.ctx is None else [name for each in error.ctx.command.params for name in each.opts]
    return f"{message}: name the store by --url URL" if "extra argument" in message and "--url" in options else message


def _unknown_option(error: click.NoSuchOption) -> str:
    known = (
        [] if error.ctx is None else [flag for each in error.ctx.command.params for flag in each.opts if flag[0] == "-"]
    )
    near = difflib.get_close_matches(error.option_name, known, n=1)
    path = "windlass" if error.ctx is None else error.ctx.command_path
    advice = f"did you mean {near[0]!r}?" if near else "look at the help"
    return f"no such option {error.option_name!r}: {advice} (see {path} --help)"


def _plain(message: str) -> str:
    lines = " ".join(message.split())
    return lines[:1].lower() + lines[1:].removesuffix(".")
