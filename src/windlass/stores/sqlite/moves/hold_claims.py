"""While a claim is held: renewals, progress and log lines."""

from collections.abc import Sequence

import msgspec

from windlass.core.commands import RenewClaims, WriteNotes
from windlass.core.duration import later, to_micros
from windlass.core.errors import StoreCorrupt
from windlass.core.fence import refusal
from windlass.core.ids import JobId
from windlass.core.job import Note, Token
from windlass.core.names import LOG_LINES_KEPT, MAX_LOG_LINE, shortened
from windlass.core.requests import Renewed, Settled
from windlass.stores.sqlite.moves.set_aside import standing
from windlass.stores.sqlite.rows import Standing, json_list
from windlass.stores.sqlite.statements import sql
from windlass.stores.sqlite.transaction import Transaction


def renew(tx: Transaction, command: RenewClaims) -> list[Renewed | None]:
    """Extend leases, in one statement."""
    expires_at = later(tx.moment, command.lease)
    ids = json_list([job_id for job_id, _ in command.claims])
    pairs = json_list([job_id + token for job_id, token in command.claims])
    parameters = {"ids": ids, "pairs": pairs, "lease_expires_at": to_micros(expires_at)}
    rows = tx.execute(sql("renew"), parameters).fetchall()
    flags = {(job_id, token): bool(flag) for job_id, token, flag in rows}
    pairs_held = ((job_id, token) for job_id, token in command.claims)
    return [Renewed(expires_at, flags[claim]) if claim in flags else None for claim in pairs_held]


def fence(tx: Transaction, job_id: JobId, token: str) -> Standing | Settled:
    """Return the job of a claim that holds, or that the claim is settled or lost.

    Every transaction takes the write lock before it reads, so the claim cannot be taken back before its end. Raises
    `StoreCorrupt` when the job is damaged.
    """
    job = standing(tx, job_id)
    if job is None:
        return Settled.LOST
    refused = refusal(job.state, job.token, token)
    return job if refused is None else refused


def fence_all(tx: Transaction, claims: Sequence[tuple[JobId, Token]]) -> list[bool]:
    """Return which claims hold; they cannot be taken back before the transaction ends."""
    return [_held(tx, job_id, token) is not None for job_id, token in claims]


def _held(tx: Transaction, job_id: JobId, token: str) -> Standing | None:
    """Return the job of a claim that holds; a claim of a damaged job does not."""
    try:
        job = fence(tx, job_id, token)
    except StoreCorrupt:
        return None
    return None if isinstance(job, Settled) else job


def note(tx: Transaction, command: WriteNotes) -> list[bool]:
    """Write what running jobs report of themselves."""
    return [_note(tx, one) for one in command.notes]


def _note(tx: Transaction, note: Note) -> bool:
    job = _held(tx, note.job_id, note.token)
    if job is None:
        return False
    progress = None if note.progress is None else msgspec.json.encode(note.progress).decode()
    [last] = tx.row("note", {"seq": job.seq, "progress": progress, "lines": len(note.lines)})
    first = last - len(note.lines) + 1
    for line, (level, text) in enumerate(note.lines, first):
        tx.run("write_log_line", (job.seq, line, tx.now, level, shortened(text, MAX_LOG_LINE), job.delivery))
    if last > LOG_LINES_KEPT:
        tx.run("forget_old_log", {"seq": job.seq, "last": last - LOG_LINES_KEPT})
    return True
