"""Calls that were made together: in which order of their steps the model gives the same answers."""

from collections.abc import Iterator, Sequence
from itertools import chain

from windlass.testing.call import Call, Step
from windlass.testing.model import Model


def explained(model: Model, calls: Sequence[Call], answers: Sequence[object]) -> Iterator[Model]:
    """Yield what the model knows after each order of the steps of `calls` that explains `answers`."""
    made = zip(calls, answers, strict=True)
    steps = [(call, step) for call, answer in made for step in call.steps(model, answer)]
    for each in _orders(model, steps, calls):
        each.busy = frozenset()
        yield each


def _orders(
    model: Model, steps: list[tuple[Call, Step]], calls: Sequence[Call], before: str | None = None
) -> Iterator[Model]:
    """Yield what the model knows after each order of `steps`; the last one before had to do with the queue `before`."""
    if not steps:
        yield model.copy()
    for at, (call, step) in enumerate(steps):
        # steps in two queues never meet: one order of them stands for the other
        if step.queue is not None and before is not None and step.queue < before:
            continue
        trial = model.copy()
        others = [other.holds for other in calls if other is not call]
        trial.busy = frozenset(trial.jobs if None in others else chain.from_iterable(filter(None, others)))
        if step.explain(trial):
            yield from _orders(trial, steps[:at] + steps[at + 1 :], calls, step.queue)
