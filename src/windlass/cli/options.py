"""The options that many commands share."""

from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any, TypeVar, cast

import click

from windlass.cli.log_lines import tell_warnings
from windlass.config.forms import Span
from windlass.core.errors import InvalidValue

F = TypeVar("F", bound=Callable[..., Any])


def read_duration(ctx: click.Context, param: click.Parameter, value: str | None) -> timedelta | None:
    """Read a duration as the settings are read: `30`, `30s`, `5m`, `2h`, `7d`."""
    if value is None:
        return None
    try:
        found = Span().read(value.strip(), "it")
    except InvalidValue as error:
        raise click.BadParameter(str(error), ctx, param) from error
    return cast("timedelta", found)


def output_options(function: F) -> F:
    """Give a command `--json` and `--debug`, and let it tell warnings of the library as lines of their own."""
    function = debug_option(function)
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(function)


def debug_option(function: F) -> F:
    """Give a command `--debug`, and let it tell warnings of the library as lines of their own."""
    return click.option(
        "--debug",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_debug,
        help="Show the traceback of an error.",
    )(function)


def store_options(function: F) -> F:
    """Let the user say which store is meant: by its URL, or as that of an app."""
    function = click.option("--url", metavar="URL", help="The store, for example sqlite:///jobs.db.")(function)
    return click.option("--app", metavar="MODULE:APP", help="The app, for example tasks:app.")(function)


def store_argument(function: F) -> F:
    """Let the user name the store by an argument too; for commands without arguments of their own."""

    @wraps(function)
    def with_store(*, store: str | None, app: str | None, url: str | None, **given: Any) -> Any:  # noqa: ANN401 - as the command's
        if store is None:
            return function(app=app, url=url, **given)
        is_url = "://" in store
        if (url if is_url else app) is not None:
            message = f"the store is named twice: leave out the argument, or {'--url' if is_url else '--app'}"
            raise click.UsageError(message, click.get_current_context())
        return function(app=app if is_url else store, url=store if is_url else url, **given)

    return click.argument("store", required=False, metavar="[STORE]")(cast("F", with_store))


def _debug(ctx: click.Context, param: click.Parameter, value: object) -> None:
    del param
    # runs for every command, also without the flag
    tell_warnings()
    if value:
        ctx.find_root().meta["windlass.debug"] = True
