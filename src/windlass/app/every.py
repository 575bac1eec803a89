"""`@app.every`: schedules that stand above their handlers."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from inspect import Parameter
from types import FunctionType
from typing import Any, Final, TypeVar, get_origin

from windlass.app.handler import Handler
from windlass.app.home import Home
from windlass.app.registry import place_of
from windlass.client.wanted import checked_terms
from windlass.core.errors import InvalidValue
from windlass.core.names import check_name
from windlass.handlers.arguments import JsonArguments
from windlass.schedule.declared import Declared

H = TypeVar("H", bound=Handler[..., Any])

_NOT_PROVIDED: Final = frozenset({"builtins", "types", "typing"})
"""Where the types come from that no lifespan yields."""


class Declarations:
    """The schedules that an app declares, by id."""

    def __init__(self, app: Home) -> None:
        """Take those above the handlers of `app`."""
        self._app = app
        self._declared: dict[str, Declared] = {}

    @property
    def declared(self) -> Mapping[str, Declared]:
        """The schedules whose handler is still one: a module that is loaded again makes both anew."""
        handlers = self._app.handlers
        return {
            each.id: each
            for each in self._declared.values()
            if handlers.get(each.registered.kind or "") is each.registered
        }

    def every(
        self,
        rule: str | timedelta | float,
        *,
        id: str | None,
        timezone: str,
        args: Mapping[str, object],
        catch_up: str,
        overlap: str,
    ) -> Callable[[H], H]:
        """Return what declares a schedule for the handler that stands below it, and leaves that as it is."""
        _check_called(rule)
        terms = checked_terms(rule, timezone=timezone, catch_up=catch_up, overlap=overlap)
        given = _by_name(args)

        def declare(handler: H) -> H:
            arguments = _arguments(handler, self._app)
            name = check_name(handler.kind if id is None else id, "schedule id")
            declared = Declared(name, terms, handler.registered, arguments, given)
            self._check_free(declared)
            _check_args(declared)
            self._declared[name] = declared
            return handler

        return declare

    def _check_free(self, declared: Declared) -> None:
        former = self.declared.get(declared.id)
        if former is None:
            return
        one, other = (place_of(each.registered.function) for each in (former, declared))
        where = f"twice above {one}" if one == other else f"above {one}, and above {other} too"
        message = f"schedule {declared.id!r} is declared {where}: give one of them an id= of its own"
        raise InvalidValue(message)


def _check_called(rule: object) -> None:
    if callable(rule):
        message = "@app.every takes a rule: write @app.every('*/5 * * * *') above @app.job"
        raise InvalidValue(message)


def _by_name(args: Mapping[str, object]) -> Mapping[str, object]:
    if not isinstance(args, Mapping):
        message = f"args is a mapping of names to the arguments of the handler, not {type(args).__name__}"
        raise InvalidValue(message)
    # a copy: the caller's may change before a server starts
    return dict(args)


def _arguments(handler: Handler[..., Any], app: Home) -> JsonArguments:
    # a consumer has none of this kind: its jobs are raw
    arguments = getattr(getattr(handler, "registered", None), "arguments", None)
    if not isinstance(arguments, JsonArguments):
        message = f"@app.every stands above @app.job, which makes a handler, and not above {_shown(handler)}"
        raise InvalidValue(message)
    if handler.app is not app:
        message = f"handler {handler.kind!r} is of another app: use the every() of that one"
        raise InvalidValue(message)
    return arguments


def _shown(below: object) -> str:
    return f"{below.__name__}() itself" if isinstance(below, FunctionType) else repr(below)


def _check_args(declared: Declared) -> None:
    """Refuse arguments that the handler does not take, as far as that can be told while modules are being loaded."""
    try:
        provided = declared.arguments.wants
    except InvalidValue:
        # an annotation names what is defined further below; a server looks again when it starts
        return
    signature = declared.arguments.signature
    given = {*declared.args, *provided}
    missing = [
        name
        for name, parameter in signature.parameters.items()
        if parameter.default is Parameter.empty and name not in given
    ]
    if not any(_may_be_provided(signature.annotation(name)) for name in missing):
        declared.payload()


def _may_be_provided(annotation: Any) -> bool:  # noqa: ANN401 - whatever stands behind a parameter's colon
    """Whether a lifespan further below may yield it, who knows."""
    wanted = get_origin(annotation) or annotation
    return isinstance(wanted, type) and wanted.__module__ not in _NOT_PROVIDED
