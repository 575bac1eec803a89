"""`windlass worker`: works the queues of an app, in processes that a parent watches over."""

import logging
import os
import random
import signal
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from windlass.cli.log_lines import leave_to_log
from windlass.cli.options import debug_option
from windlass.config import SETTINGS, find_project, resolve
from windlass.config.forms import Address, Choice, Form, OrNone, Queues, Span, Switch, Whole
from windlass.config.settings import BY_NAME, Setting
from windlass.core.errors import InvalidValue
from windlass.engine.config import ServerConfig
from windlass.parent.child_process import ChildProcess, child_environment
from windlass.parent.log_format import Logs
from windlass.parent.messages import Order
from windlass.parent.metrics_ports import open_ports
from windlass.parent.output import let_go_of_output
from windlass.parent.parent import Parent
from windlass.parent.reload import SourceWatch
from windlass.parent.signals import AT_ONCE, GRACEFUL

F = TypeVar("F", bound=Callable[..., Any])

FLAGS: Final = tuple(setting for setting in SETTINGS if setting.name != "app")
"""Every setting but the app, which is named without a flag."""


def setting_options(function: F) -> F:
    """Give a command a flag for each setting; each is text, read where all other sources are."""
    for setting in reversed(FLAGS):
        option = click.option(setting.flag, setting.name, metavar=_metavar(setting.form), help=_help(setting))
        function = option(function)
    return function


def _metavar(form: Form) -> str:
    match form:
        case OrNone(inner):
            return f"{_metavar(inner)}|none"
        case Whole():
            return "N"
        case Span():
            return "DURATION"
        case Switch():
            return "on|off"
        case Choice(words):
            return "|".join(words)
        case Queues():
            return "A,B or A=3,B=1"
        case Address():
            return "[HOST:]PORT"
        case _:
            return "TEXT"


def _help(setting: Setting) -> str:
    text = setting.meaning[:1].upper() + setting.meaning[1:] + "."
    return text if setting.default is None else f"{text} [default: {setting.form.show(setting.default)}]"


SECTIONS: Final[Mapping[str, Collection[str]]] = {
    "The store and the app": ("app", "url", "name"),
    "What runs here": ("queues", "order", "concurrency", "processes", "threads", "schedules", "services"),
    "Jobs": ("max_attempts", "lease", "priority", "job_timeout", "shutdown_timeout", "max_payload"),
    "Finished records": ("keep_succeeded", "keep_dead", "keep_cancelled", "keep_max"),
    "Intervals": ("poll_interval", "rescue_interval", "prune_interval", "heartbeat_interval", "dead_after"),
    "Logs and metrics": ("log_format", "log_level", "job_log_level", "metrics", "as_json"),
}
"""The options by the headings of the help; the others follow under "Options"."""


class WorkerCommand(click.Command):
    """The worker's command: its many options are shown in sections, and `-A` is answered with the right form."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options section by section."""
        options = [each for each in self.get_params(ctx) if isinstance(each, click.Option)]
        records = {each.name: record for each in options if (record := each.get_help_record(ctx))}
        for heading, names in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl([records.pop(name) for name in names])
        with formatter.section("Options"):
            formatter.write_dl(list(records.values()))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse the flag; all else is read as ever."""
        for place, word in enumerate(args):
            flag, _, value = word.partition("=")
            if flag == "-A":
                named = value or next(iter(args[place + 1 :]), "tasks:app")
                message = f"name the app without a flag, or by --app: windlass worker {named}"
                raise click.UsageError(message, ctx)
        return super().parse_args(ctx, args)


@click.command(cls=WorkerCommand)
@click.argument("named", required=False, metavar="[MODULE:APP]")
@click.option("--app", metavar="MODULE:APP", help="The app, as the argument.")
@setting_options
@click.option("--reload", is_flag=True, help="Start anew when a *.py file or pyproject.toml below this folder changes.")
@click.option("--json", "as_json", is_flag=True, help="Write the log as JSON, one object a line.")
@debug_option
def worker(*, named: str | None, app: str | None, reload: bool, as_json: bool, **flags: str | None) -> None:
    """Work the queues of an app until it is stopped.

    The first SIGTERM, SIGINT (Ctrl-C) or SIGHUP lets running jobs finish for shutdown-timeout, the second stops at
    once. Flags go over the environment, over pyproject.toml, over the code of the app.
    """
    if named is not None and app is not None:
        message = "the app is named twice: leave out the argument, or --app"
        raise click.UsageError(message, click.get_current_context())
    if named is not None and "://" in named:
        message = "a worker needs an app, and a URL names a store: windlass worker tasks:app --url URL"
        raise click.UsageError(message, click.get_current_context())
    leave_to_log()
    # of variables that only look like settings the children tell, who have a log
    logging.getLogger("windlass").addHandler(logging.NullHandler())
    given = {name: text for name, text in flags.items() if text is not None}
    if as_json:
        given["log_format"] = "json"
    settings = resolve({}, {**given, "app": named or app}, environ=os.environ, project=find_project(Path.cwd()))
    spec = settings.value("app")
    if spec is None:
        message = "no app is named: windlass worker tasks:app, or set WINDLASS_APP, or app in [tool.windlass]"
        raise InvalidValue(message)
    config = ServerConfig.from_settings(settings)
    order = Order(
        app=str(spec),
        flags=given,
        processes=config.processes,
        grace=config.shutdown_timeout.total_seconds(),
        log_format=str(settings.value("log_format")),
        log_level=str(settings.value("log_level")),
    )
    logs = Logs(order.log_format, order.log_level)
    logs.take_root()
    environment = child_environment(given, {name: setting.variable for name, setting in BY_NAME.items()})
    source = SourceWatch(Path.cwd()) if reload else None
    ports = open_ports(settings.value("metrics"), config.processes)

    def start(number: int) -> ChildProcess:
        return ChildProcess(order, environment, ports[number] if ports else None)

    parent = Parent(order, start, draw=random.random, source=source)
    code = parent.run()
    for number in (*GRACEFUL, AT_ONCE):
        # all is over, and one more would only change the exit code
        signal.signal(number, signal.SIG_IGN)
    let_go_of_output()
    raise click.exceptions.Exit(code)
