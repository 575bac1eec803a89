"""Operations that are one call of the store: they need no handler of their own."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, TypeVar

from windlass.api.carried_call import AuditedChange, PlainCall
from windlass.api.operations import OPERATIONS
from windlass.core.store_calls import Command, Query, RepeatSafety
from windlass.http.audit import write_down, write_down_jobs
from windlass.http.call import Call, Handled

R = TypeVar("R")


async def execute(carries: PlainCall[Any, Any, Any, Any], call: Call[Any]) -> Any:  # noqa: ANN401 - of any operation
    """Execute the store call of a request, write what it has changed to the audit, and return the response."""
    store_call = carries.read(call.asked)
    reply = await _execute(call, store_call)
    changed = None if carries.audit is None else carries.audit(store_call, reply)
    if changed is not None:
        await _write_down(call, changed)
    return carries.response(store_call, reply)


async def _execute(call: Call[Any], store_call: Command[R] | Query[R]) -> R:
    if isinstance(store_call, Command):
        # other replies are kept by the serving process
        name = call.request_id if store_call.repeat is RepeatSafety.STORE else None
        return await call.store.do(store_call, request_id=name)
    return await call.store.ask(store_call)


async def _write_down(call: Call[Any], changed: AuditedChange) -> None:
    if isinstance(changed.target, str):
        await write_down(call, changed.action, changed.target, changed.detail)
    else:
        await write_down_jobs(call, changed.action, changed.target, changed.detail)


HANDLED: Final[Sequence[Handled[Any, Any]]] = [
    Handled(operation, partial(execute, operation.carries))
    for operation in OPERATIONS
    if isinstance(operation.carries, PlainCall)
]
