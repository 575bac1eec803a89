"""The mark for secret arguments, and what is marked with it in an annotation, also deep inside."""

from collections.abc import Iterator, Mapping
from itertools import islice
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    TypeAlias,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from windlass.codec import is_model
from windlass.handlers.secret_paths import EACH, MOST_PATHS, Path


class Secret:
    """Marks an argument whose value is shown to nobody: `token: Annotated[str, Secret]`.

    It may stand on a parameter, or on a field of a dataclass or model inside one. Its path is stored with the job, so
    that whoever shows the arguments leaves the value out. The value itself is stored as it is: it is hidden, not
    encrypted, and the handler gets it.
    """


_Part: TypeAlias = tuple[Path | None, Any]
"""An annotation inside another and the steps to it; None when a secret in it makes one of the whole."""

_NOT_A_PART: Final = (Literal, ClassVar)
_CONTAINERS: Final = frozenset({"builtins", "collections", "collections.abc"})
_BY_NAME: Final = ("__dataclass_fields__", "__total__", "__attrs_attrs__")
"""What a dataclass has, a TypedDict, whoever made it, and a class of attrs: JSON has their fields by name."""
_HERE: Final[Path] = ()
_DEEPEST: Final = 40
_HIDDEN: Final = Annotated[object, Secret]


def secret_paths(annotation: Any, at: Path) -> list[Path]:  # noqa: ANN401 - an annotation
    """Return the paths of what is secret in a value annotated like this, which stands at `at`.

    There is an end to it: of a type that contains itself the inner one is secret as a whole, and so is a value with
    very many secret fields.
    """
    found = list(islice(_found(annotation, at, ()), MOST_PATHS + 1))
    return [at] if len(found) > MOST_PATHS else found


def _found(annotation: Any, at: Path, above: tuple[Any, ...]) -> Iterator[Path]:  # noqa: ANN401
    if not _holds(annotation, set()):
        return
    again = any(annotation is each for each in above)
    if _is_marked(annotation) or again or len(above) >= _DEEPEST:
        yield at
        return
    for steps, part in _parts(annotation):
        if steps is not None:
            yield from _found(part, (*at, *steps), (*above, annotation))
        elif _holds(part, set()):
            yield at


def _holds(annotation: Any, seen: set[int]) -> bool:  # noqa: ANN401
    if _is_marked(annotation):
        return True
    if isinstance(annotation, type) or hasattr(annotation, "__value__"):
        # only what has a name can contain itself, and it lives as long as its module
        if id(annotation) in seen:
            return False
        seen.add(id(annotation))
    return any(_holds(part, seen) for _, part in _parts(annotation))


def _is_marked(annotation: Any) -> bool:  # noqa: ANN401
    marks = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return any(_is_mark(each) for each in marks)


def _is_mark(mark: object) -> bool:
    return mark is Secret or isinstance(mark, Secret)


def _parts(annotation: Any) -> Iterator[_Part]:  # noqa: ANN401
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield _HERE, args[0]
    elif isinstance(origin, type) and origin is not UnionType:
        yield from _parts_of_generic(origin, args)
    elif origin is not None:
        # a union, or a word around a type, as in NotRequired[int]
        yield from ((_HERE, each) for each in (*args, *_meant(origin)) if origin not in _NOT_A_PART)
    elif isinstance(annotation, type):
        yield from _parts_of_class(annotation)
    else:
        yield from ((_HERE, each) for each in _meant(annotation))


def _meant(name: Any) -> Iterator[Any]:  # noqa: ANN401
    """Give what a name for types stands for: an alias, a `NewType`, a type variable."""
    for attribute in ("__value__", "__supertype__", "__bound__"):
        meant = getattr(name, attribute, None)
        if meant is not None:
            yield meant
    yield from getattr(name, "__constraints__", ())


def _parts_of_generic(origin: type, args: tuple[Any, ...]) -> Iterator[_Part]:
    if origin.__module__ not in _CONTAINERS:
        yield _HERE, origin
        yield from ((None, each) for each in args)
    elif issubclass(origin, Mapping):
        *keys, value = args
        # a key cannot be hidden by itself
        yield from ((None, each) for each in keys)
        yield (EACH,), value
    else:
        yield from (((EACH,), each) for each in args if each is not Ellipsis)


def _parts_of_class(known: type) -> Iterator[_Part]:
    for base in known.__mro__:
        # which field a type variable stands for is not looked up
        given = (get_args(each) for each in vars(base).get("__orig_bases__", ()))
        yield from ((None, each) for args in given for each in args)
    if is_model(known):
        yield from _parts_of_model(known)
    elif msgspec.Struct in known.__mro__:
        yield from _parts_of_struct(known)
    elif tuple in known.__mro__:
        # a NamedTuple is a list in JSON
        yield from (((EACH,), each) for each in _hints(known).values())
    elif any(hasattr(known, mark) for mark in _BY_NAME):
        yield from (((name,), each) for name, each in _hints(known).items())


def _parts_of_struct(known: Any) -> Iterator[_Part]:  # noqa: ANN401 - a class of structs
    hints, as_list = _hints(known), known.__struct_config__.array_like
    for name, written in zip(known.__struct_fields__, known.__struct_encode_fields__, strict=True):
        yield (EACH if as_list else written,), hints.get(name)


def _parts_of_model(model: Any) -> Iterator[_Part]:  # noqa: ANN401 - a class of a package that may be missing
    # a model that names what is defined further below has not read its own annotations yet
    hints = {} if model.__pydantic_complete__ else _hints(model)
    for name, field in model.model_fields.items():
        annotation = _HIDDEN if any(map(_is_mark, field.metadata)) else hints.get(name, field.annotation)
        if model.__pydantic_root_model__:
            yield _HERE, annotation
            continue
        names = [name, field.alias, field.serialization_alias, field.validation_alias]
        yield from (((each,), annotation) for each in dict.fromkeys(each for each in names if isinstance(each, str)))
        if not isinstance(field.validation_alias, str | None):
            # such may lead to anywhere in the model
            yield None, annotation


def _hints(known: type) -> dict[str, Any]:
    try:
        return get_type_hints(known, include_extras=True)
    except (NameError, AttributeError, SyntaxError, TypeError):
        return {}
