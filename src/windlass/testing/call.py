"""One call of a store, and how the model explains its answer: in one step, or in several that others come between."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from windlass.core.errors import JobConflict, NotAtomicHere
from windlass.core.ids import JobId
from windlass.core.store import Store
from windlass.testing.model import Model

A = TypeVar("A")
_REFUSALS: Final = (JobConflict, NotAtomicHere)


@dataclass(frozen=True)
class Step:
    """What a call does at one moment: whether the model explains that of its answer, which changes the model."""

    explain: Callable[[Model], bool]
    queue: str | None = None
    """The only queue that it has to do with, if it is one."""


@dataclass(frozen=True)
class Call:
    """One call: how it is made, and whether the model gives the same answer, which changes the model."""

    name: str
    make: Callable[[Store], Awaitable[Any]]
    explain: Callable[[Model, Any], bool]
    holds: Collection[JobId] | None = ()
    """The jobs that it has in hand while it is under way; None when they can be any."""
    parts: Callable[[Model, Any], list[Step]] | None = None
    """The steps that it takes on a store like the model, when they may be more than one."""

    def steps(self, model: Model, answer: object) -> list[Step]:
        """Return the steps that it takes on a store like `model`; those of other calls may come between them."""
        if self.parts is not None:
            return self.parts(model, answer)
        return [Step(lambda trial: self.explain(trial, answer))]


NEVER: Final = Step(lambda _: False)
"""What no model explains."""


async def answered(work: Awaitable[Any]) -> Any:  # noqa: ANN401 - each call has an answer of its own
    """Return the answer of a call; a refusal is an answer like any other."""
    try:
        return await work
    except _REFUSALS as refusal:
        return type(refusal)


def agrees(explain: Callable[[], bool], answer: object) -> bool:
    """Whether the model gives this answer; when it refuses, the store must have refused likewise."""
    try:
        return explain()
    except _REFUSALS as refusal:
        return answer is type(refusal)


def job_by_job(
    name: str,
    make: Callable[[Store], Awaitable[Any]],
    asked: Sequence[tuple[JobId, A]],
    explain: Callable[[Model, A, Any], bool],
    *,
    holds: Collection[JobId] | None = (),
) -> Call:
    """Return a call about several jobs, each a step of its own, for which it is `asked` something and gives an answer.

    What is asked for one job twice is one step, in its order.
    """

    def explain_some(model: Model, some: Iterable[tuple[A, object]]) -> bool:
        return all(explain(model, each, answer) for each, answer in some)

    def explain_all(model: Model, answers: Sequence[object]) -> bool:
        return len(answers) == len(asked) and explain_some(
            model, ((each, answer) for (_, each), answer in zip(asked, answers, strict=True))
        )

    def of_job(some: Sequence[tuple[A, object]], queue: str | None) -> Step:
        return Step(lambda model: explain_some(model, some), queue)

    def parts(model: Model, answers: Sequence[object]) -> list[Step]:
        if len(answers) != len(asked):
            return [NEVER]
        jobs: dict[JobId, list[tuple[A, object]]] = {}
        for (job_id, each), answer in zip(asked, answers, strict=True):
            jobs.setdefault(job_id, []).append((each, answer))
        homes = {} if model.atomic_across_queues else model.homes
        return [of_job(some, homes.get(job_id)) for job_id, some in jobs.items()]

    return Call(name, make, explain_all, holds, parts)
