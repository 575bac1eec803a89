"""A job as it is written on the command line: by the handler of an app, or as it is."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, NamedTuple, TypeVar, Union, cast, get_args, get_origin

import click

from windlass.app.app import App
from windlass.app.handler import Handler
from windlass.cli.complete_names import complete_queues
from windlass.core.errors import InvalidValue
from windlass.core.job import PRIORITY_HIGH, PRIORITY_LOW, PRIORITY_NORMAL, NewJob
from windlass.handlers.arguments import JsonArguments

F = TypeVar("F", bound=Callable[..., Any])

PRIORITIES: Final = {"high": PRIORITY_HIGH, "normal": PRIORITY_NORMAL, "low": PRIORITY_LOW}


def read_priority(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """Read a priority, a number or one of three words; whether it is within bounds is judged with the job."""
    if value is None or value.lower() in PRIORITIES:
        return None if value is None else PRIORITIES[value.lower()]
    try:
        return int(value)
    except ValueError:
        message = f"{value[:40]!r} is no integer and none of {', '.join(PRIORITIES)}"
        raise click.BadParameter(message, ctx, param) from None


class Words(NamedTuple):
    """What was written of a job."""

    kind: str | None
    values: tuple[str, ...]
    args: str | None
    payload: str | None
    raw_kind: str | None
    queue: str | None
    priority: int | None
    max_attempts: int | None
    tenant: str | None
    header: tuple[str, ...]

    @property
    def by_app(self) -> bool:
        """Whether a handler of an app is to make the job."""
        return self.kind is not None


def job_options(function: F) -> F:
    """Let the user describe a job; the command gets it as the keywords of `Words`."""
    for decorate in reversed(_OPTIONS):
        function = decorate(function)
    return function


_OPTIONS: Final[Sequence[Callable[[Any], Any]]] = (
    click.argument("kind", required=False),
    click.argument("values", nargs=-1, metavar="[NAME=VALUE]..."),
    click.option("--args", metavar="JSON", help="The arguments as one JSON object, - for stdin, or @file."),
    click.option("--payload", metavar="TEXT", help="The bytes of a raw job: a text, - for stdin, or @file."),
    click.option("--kind", "raw_kind", metavar="KIND", help="The kind of a job that no app is asked about."),
    click.option(
        "--queue", metavar="QUEUE", shell_complete=complete_queues, help="The queue; by default that of the handler."
    ),
    click.option(
        "--priority", callback=read_priority, metavar="N", help="high, normal, low, or a number: the lowest goes first."
    ),
    click.option("--max-attempts", type=int, metavar="N", help="How many attempts it may be charged."),
    click.option("--tenant", metavar="TENANT", help="Whom it belongs to."),
    click.option("--header", multiple=True, metavar="NAME=VALUE", help="A header; may be given often."),
)


def new_job(words: Words, app: App | None, **more: Any) -> NewJob:  # noqa: ANN401 - fields of a job
    """Return the job that is meant; `more` are further fields of it. Arguments are checked by the app's handler."""
    fields: dict[str, Any] = {
        "priority": words.priority,
        "max_attempts": words.max_attempts,
        "tenant": words.tenant,
        "headers": _headers(words.header),
        **more,
    }
    if words.kind is not None:
        return _by_handler(words, words.kind, app, fields)
    return _raw(words, fields)


def check_words(words: Words) -> None:
    """Refuse what cannot be meant together, before anything is loaded or opened."""
    if words.kind is None:
        if not (words.payload is not None or words.raw_kind or words.args):
            message = "say what to enqueue: KIND NAME=VALUE ... of an app, or --queue and --payload for a raw job"
            raise click.UsageError(message)
        if words.queue is None:
            message = "a raw job needs --queue"
            raise click.UsageError(message)
        if words.args is not None and words.raw_kind is None:
            message = "--args are for a kind: give --kind, or --payload for a raw job"
            raise click.UsageError(message)
    elif words.raw_kind is not None or words.payload is not None:
        flag = "--kind" if words.raw_kind is not None else "--payload"
        message = f"{flag} is for raw jobs, and {words.kind!r} is done by a handler of the app: leave one of them out"
        raise click.UsageError(message)
    if words.args is not None and (words.values or words.payload is not None):
        message = "--args is all there is of arguments: give neither NAME=VALUE nor --payload beside it"
        raise click.UsageError(message)


def _by_handler(words: Words, kind: str, app: App | None, fields: dict[str, Any]) -> NewJob:
    assert app is not None  # noqa: S101 - a job by an app is asked for with the app
    handler = app.handler(kind)
    arguments = _arguments(words, handler)
    try:
        call = handler.options(queue=words.queue, **fields).call(**arguments)
    except TypeError as error:
        if isinstance(error, InvalidValue):
            raise
        message = f"{error}; it takes: {_usage(handler)}"
        raise InvalidValue(message) from error
    return call.new_job()


def _usage(handler: Handler[..., Any]) -> str:
    arguments = cast("JsonArguments", handler.registered.arguments)
    taken = [each for name, each in arguments.signature.parameters.items() if name not in arguments.wants]
    names = [f"{each.name}=…" if each.default is each.empty else f"[{each.name}=…]" for each in taken]
    return " ".join([handler.kind, *names])


def _arguments(words: Words, handler: Handler[..., Any]) -> dict[str, Any]:
    if words.args is not None:
        return _object(words.args)
    found: dict[str, Any] = {}
    for text in words.values:
        name, value = _pair(text, "an argument", f"; it takes: {_usage(handler)}")
        if name in found:
            message = f"the argument {name!r} is given twice"
            raise InvalidValue(message)
        found[name] = _value(value, name, handler)
    return found


def _value(text: str, name: str, handler: Handler[..., Any]) -> Any:  # noqa: ANN401 - the JSON edge
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    # a number is a text where a text is wanted: nobody should have to quote a postcode twice
    return text if not isinstance(value, str) and _is_text(name, value, handler) else value


def _is_text(name: str, value: object, handler: Handler[..., Any]) -> bool:
    signature = cast("JsonArguments", handler.registered.arguments).signature
    if name not in signature.parameters:
        return False
    annotation = signature.annotation(name)
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, UnionType):
        return value is not None and set(get_args(annotation)) == {str, type(None)}
    return annotation is str


def _raw(words: Words, fields: dict[str, Any]) -> NewJob:
    payload: object = b""
    if words.args is not None:
        payload = _object(words.args)
    elif words.payload is not None:
        payload = _content(words.payload)
    return NewJob(words.queue or "", payload, kind=words.raw_kind, **fields)


def _object(text: str) -> dict[str, Any]:
    content = _content(text)
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        message = f"--args is no JSON: {error}"
        raise InvalidValue(message) from error
    if not isinstance(found, dict):
        message = f"--args must be one JSON object, as in '{{\"name\": 1}}', not {type(found).__name__}"
        raise InvalidValue(message)
    return cast("dict[str, Any]", found)


def _content(text: str) -> bytes:
    if text == "-":
        return sys.stdin.buffer.read()
    if not text.startswith("@"):
        return text.encode("utf-8", "surrogateescape")
    path = Path(text[1:])
    try:
        return path.read_bytes()
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}"
        raise InvalidValue(message) from error


def _headers(pairs: Sequence[str]) -> Mapping[str, str] | None:
    return dict(_pair(text, "--header") for text in pairs) or None


def _pair(text: str, what: str, advice: str = "") -> tuple[str, str]:
    name, mark, value = text.partition("=")
    if not mark or not name:
        message = f"{what} is written NAME=VALUE, not {text[:40]!r}{advice}"
        raise InvalidValue(message)
    return name, value
