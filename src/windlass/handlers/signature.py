"""The parameters of a function that is to be a handler, and the mark for those that no caller gives."""

import difflib
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from inspect import Parameter
from types import SimpleNamespace
from typing import Any, Final, get_type_hints

from windlass.core.errors import InvalidValue

_REFUSED: Final[Mapping[object, str]] = {
    Parameter.VAR_POSITIONAL: "takes *{}",
    Parameter.POSITIONAL_ONLY: "takes {} by position alone",
}


class Given:
    """The default of a parameter that the server fills in."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Read well in signatures."""
        return "given()"


GIVEN: Final = Given()


def given() -> Any:  # noqa: ANN401 - it stands in for a value of any type
    """Return a default for a parameter that a lifespan provides, so that callers may leave it out.

    `async def send(user_id: int, pool: Pool = given()) -> None` is enqueued as `send.enqueue(42)`, also in the eyes of
    a type checker; the server hands over the pool that a lifespan opened.
    """
    return GIVEN


class Signature:
    """What a function takes, as far as a job can give it: every argument by its name.

    Made at decoration, where it refuses what no job can give. Annotations are read when they are asked for, since they
    may name what is defined further below.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        """Refuse a function that cannot be a handler."""
        self.function = function
        self.name: str = getattr(function, "__name__", type(function).__name__)
        self._signature = inspect.signature(function)
        parameters = list(self._signature.parameters.values())
        for parameter in parameters:
            self._check(parameter)
        self.extra = next((each for each in parameters if each.kind is Parameter.VAR_KEYWORD), None)
        self.parameters: Mapping[str, Parameter] = {
            each.name: each for each in parameters if each.kind is not Parameter.VAR_KEYWORD
        }

    def annotation(self, name: str) -> Any:  # noqa: ANN401 - whatever stands behind a parameter's colon
        """Return what a parameter is annotated with, `Any` when it is not; raises `InvalidValue`."""
        return annotation_of(self.function, name, self._signature.parameters[name].annotation)

    def bind(
        self, args: Sequence[object], kwargs: Mapping[str, object], *, without: Collection[str] = ()
    ) -> dict[str, Any]:
        """Return the arguments by name as a call would take them; raises `TypeError` as a call does."""
        signature = self._signature
        if without:
            kept = [each for each in signature.parameters.values() if each.name not in without]
            signature = signature.replace(parameters=kept)
        self._check_names(kwargs, [name for name in self.parameters if name not in without])
        try:
            bound = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            message = f"{self.name}() {error}"
            raise TypeError(message) from None
        extra: Mapping[str, Any] = {} if self.extra is None else bound.pop(self.extra.name, {})
        return {**bound, **extra}

    def _check_names(self, kwargs: Mapping[str, object], taken: Collection[str]) -> None:
        """Refuse a name that nothing has before anything is missed: it may have been meant for that."""
        unknown = next((name for name in kwargs if name not in taken), None)
        # what is no name at all is refused by the call
        if self.extra is None and isinstance(unknown, str):
            near = difflib.get_close_matches(unknown, taken, n=1)
            message = f"{self.name}() has no argument {unknown!r}{f': did you mean {near[0]!r}?' if near else ''}"
            raise TypeError(message)

    @property
    def marked(self) -> list[str]:
        """The parameters whose default says that the server gives them."""
        return [each.name for each in self.parameters.values() if isinstance(each.default, Given)]

    def _check(self, parameter: Parameter) -> None:
        refused = _REFUSED.get(parameter.kind)
        if refused is not None:
            message = (
                f"{self.name}() cannot be a handler, it {refused.format(parameter.name)}: the arguments of a job are "
                "stored by name, so let every parameter have one"
            )
            raise InvalidValue(message)
        if parameter.name.startswith("__"):
            message = f"{self.name}() cannot be a handler with a parameter named {parameter.name}: use a plain name"
            raise InvalidValue(message)


def annotation_of(function: Callable[..., Any], name: str, written: object) -> Any:  # noqa: ANN401 - as `annotation`
    """Return one annotation of a function, looked up where the function was defined; raises `InvalidValue`."""
    if written is Parameter.empty:
        return Any
    inner = inspect.unwrap(function)
    names: dict[str, Any] = getattr(inner, "__globals__", {})
    try:
        hints = get_type_hints(SimpleNamespace(__annotations__={name: written}), names, include_extras=True)
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        shown = getattr(function, "__name__", repr(function))
        message = (
            f"the annotation of {name} in {shown}() cannot be read ({error}): what it names must be there at run time, "
            "in the module of the function and not only for type checkers"
        )
        raise InvalidValue(message) from error
    return hints[name]
