"""The calls of a store that are about schedules; see `calls`."""

from collections.abc import Collection

from windlass.core.schedule import DueSchedules, Firing, Schedule
from windlass.testing.call import Call, agrees, answered
from windlass.testing.calls import held_by_keys
from windlass.testing.model import Model


def write_schedule(schedule: Schedule, expected: int | None) -> Call:
    """Write a schedule, with a revision of any age."""
    return Call(
        "write_schedule",
        lambda store: answered(store.write_schedule(schedule, expected=expected)),
        lambda model, answer: agrees(lambda: model.schedules.write(schedule, expected, answer), answer),
    )


def remove_schedule(schedule_id: str) -> Call:
    """Remove a schedule that may not be there."""
    return Call(
        "remove_schedule",
        lambda store: store.remove_schedule(schedule_id),
        lambda model, answer: answer is model.schedules.remove(schedule_id),
    )


def due_schedules(declared: Collection[str], limit: int) -> Call:
    """Look which schedules are due."""

    def explain(model: Model, answer: DueSchedules) -> bool:
        return model.schedules.due(declared, limit, model.now) == answer

    return Call("due_schedules", lambda store: store.due_schedules(declared, limit=limit), explain)


def fire(firing: Firing) -> Call:
    """Fire a schedule, with a revision of any age."""
    return Call(
        "fire",
        lambda store: answered(store.fire(firing)),
        lambda model, answer: agrees(lambda: model.fire(firing) == answer, answer),
        held_by_keys(firing.jobs),
    )
