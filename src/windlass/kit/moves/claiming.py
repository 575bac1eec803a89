"""Claim, and what only the holder of a claim may do: renew and note."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from windlass.core.clock import Rng
from windlass.core.duration import later
from windlass.core.ids import JobId
from windlass.core.job import Claim, LogLine, Note, Token
from windlass.core.names import LOG_LINES_KEPT, MAX_LOG_LINE, shortened
from windlass.core.requests import ClaimRequest, Renewed, Settled
from windlass.core.states import State
from windlass.kit.moves.record import Record
from windlass.kit.moves.table import Table

TOKEN_BYTES = 16


def claim(table: Table, ready: Sequence[Record], request: ClaimRequest, rng: Rng, now: datetime) -> list[Claim]:
    """Give these jobs, which are out of their lines or leave them now, each with a token of its own."""
    lease_expires_at = later(now, request.lease)
    claims: list[Claim] = []
    for record, token in zip(ready, _tokens(rng, len(ready)), strict=True):
        table.starts_running(record, token, request.worker, lease_expires_at, now)
        claims.append(Claim(record.job(), token))
    return claims


def _tokens(rng: Rng, many: int) -> list[Token]:
    digits = rng.token_bytes(TOKEN_BYTES * many).hex() if many else ""
    return [Token(digits[at : at + 2 * TOKEN_BYTES]) for at in range(0, len(digits), 2 * TOKEN_BYTES)]


def still_held(table: Table, claims: Sequence[tuple[JobId, Token]]) -> list[Claim]:
    """Return those of an earlier answer that still hold their job."""
    held = [(table.holder_of(job_id, token), token) for job_id, token in claims]
    return [Claim(record.job(), token) for record, token in held if not isinstance(record, Settled)]


def renew(table: Table, claims: Sequence[tuple[JobId, Token]], lease: timedelta, now: datetime) -> list[Renewed | None]:
    """Let claims hold for `lease` from now; None for each whose token no longer holds."""
    lease_expires_at = later(now, lease)
    renewed: list[Renewed | None] = []
    for job_id, token in claims:
        record = table.holder_of(job_id, token)
        if isinstance(record, Settled):
            renewed.append(None)
            continue
        record.lease_expires_at = lease_expires_at
        table.queue(record.queue).place(record, State.RUNNING)
        renewed.append(Renewed(lease_expires_at, record.cancel_requested))
    return renewed


def note(table: Table, written: Note, now: datetime) -> bool:
    """Write progress and log lines of a running job; False when the token no longer holds."""
    record = table.holder_of(written.job_id, written.token)
    if isinstance(record, Settled):
        return False
    if written.progress is not None:
        record.progress = written.progress
    if written.lines:
        record.log = (*record.log, *_lines(record, written, now))[-LOG_LINES_KEPT:]
    table.changed(record)
    return True


def _lines(record: Record, written: Note, now: datetime) -> Iterator[LogLine]:
    return (LogLine(now, level, shortened(text, MAX_LOG_LINE), record.delivery) for level, text in written.lines)
