"""The argument of a consumer: the job itself, with its bytes."""

from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Any

from windlass.core.errors import InvalidValue
from windlass.core.job import Job
from windlass.handlers.arguments import Provider, wants_of
from windlass.handlers.signature import Signature


class JobArgument:
    """Hands a function the job as it was claimed, undecoded."""

    def __init__(self, function: Callable[..., Any], provider: Provider) -> None:
        """Refuse a function that cannot be a consumer; its annotations are read at the first use."""
        self.signature = Signature(function)
        self._provider = provider
        self._names: list[str] | None = None
        self._wants: Mapping[str, type] = {}

    @property
    def wants(self) -> Mapping[str, type]:
        """The parameters that are neither the job nor optional: the context, and what a lifespan provides."""
        if self._names is None:
            self._read_annotations()
        return self._wants

    def forget(self) -> None:
        """Read the annotations anew at the next use: what the server gives has changed."""
        self._names = None

    def decode(self, job: Job) -> dict[str, Any]:
        """Return the job by the name of the parameter that takes it."""
        names = self._read_annotations() if self._names is None else self._names
        return dict.fromkeys(names, job)

    def _read_annotations(self) -> list[str]:
        signature = self.signature
        annotations = {name: signature.annotation(name) for name in signature.parameters}
        self._wants = wants_of(signature, annotations, self._provider)
        open_ones = [name for name in annotations if name not in self._wants]
        annotated = [name for name in open_ones if annotations[name] is Job]
        names = annotated[:1] or open_ones[:1]
        left = [name for name in open_ones if name not in names]
        for name in left:
            if signature.parameters[name].default is Parameter.empty:
                message = f"a consumer gets the job and nothing else, and {signature.name}() wants {name} too"
                raise InvalidValue(message)
        self._names = names
        return names
