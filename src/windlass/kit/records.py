"""Records as the texts that stores keep, and what a record says without being asked."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, TypeAlias

import msgspec

from windlass.core.job import NO_HEADERS, Delivery, Job
from windlass.core.looks import ServerRecord
from windlass.core.names import HISTORY_KEPT
from windlass.core.states import State

STATES: Final = {str(state): state for state in State}
"""The states by the names that they are kept under."""
Detail: TypeAlias = tuple[int, str | None, datetime | None]
"""Of the delivery of this number: the module of its failure, and when an operator retried the job after it.

It stands beside the history, whose entries are as long as earlier releases read them.
"""
_server_decoder: Final = msgspec.json.Decoder(ServerRecord)
_headers_decoder: Final = msgspec.json.Decoder(dict[str, str])


def headers_text(headers: Mapping[str, str]) -> str:
    """Return headers as they are kept; where there are none, nothing is."""
    return msgspec.json.encode(dict(headers)).decode()


def headers_of(text: str | None) -> Mapping[str, str]:
    """Return the headers that `headers_text` was given."""
    return NO_HEADERS if text is None else _headers_decoder.decode(text)


def server_text(server: ServerRecord) -> str:
    """Return a server as it is kept."""
    return msgspec.json.encode(server).decode()


def server_of(text: str) -> ServerRecord:
    """Return the server that `server_text` was given."""
    return _server_decoder.decode(text)


def whole_history(job: Job, ended: Sequence[Delivery]) -> tuple[Delivery, ...]:
    """Return the deliveries of `job`: those that were kept and the one that the job itself tells of."""
    history = list(ended)
    known = {delivery.delivery for delivery in history}
    if job.claimed_at is not None and job.delivery not in known and job.state in (State.RUNNING, State.SUCCEEDED):
        outcome = None if job.state is State.RUNNING else "succeeded"
        history.append(Delivery(job.delivery, job.attempt, job.claimed_at, job.finished_at, job.worker, outcome))
    return tuple(history[-HISTORY_KEPT:])


def details_of(history: Sequence[Delivery]) -> tuple[Detail, ...]:
    """Return what stands beside a history, where its entries are as long as earlier releases read them."""
    found = [
        (each.delivery, None if each.failure is None else each.failure.module, each.retried_at) for each in history
    ]
    return tuple(each for each in found if each[1] is not None or each[2] is not None)


def log_lines_of(job: Job) -> int:
    """Return how many lines the log of a packed job has, but at least one where it was retried before its first claim.

    A store that counts the lines looks for what it keeps beside a job by its deliveries and its lines: such a job has a
    delivery 0 without having been claimed.
    """
    return max(len(job.log), int(bool(job.history) and not job.delivery))


def in_utf8(text: str) -> str:
    """Return a text that JSON can hold: half a pair of surrogates is written out."""
    return text.encode(errors="backslashreplace").decode()
