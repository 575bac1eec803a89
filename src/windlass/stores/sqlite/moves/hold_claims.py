"""While a claim is held: renewals, progress and log lines."""

from collections.abc import Sequence

import msgspec

from windlass.core.commands import RenewClaims, WriteNotes
from windlass.core.duration import later, to_micros
from windlass.core.ids import JobId
from windlass.core.job import Note, Token
from windlass.core.names import LOG_LINES_KEPT, MAX_LOG_LINE, shortened
from windlass.core.requests import Renewed
from windlass.stores.sqlite.rows import json_list
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


def fence(tx: Transaction, claims: Sequence[tuple[JobId, Token]]) -> list[bool]:
    """Tell which claims hold, with the write lock taken: nobody can take them back before the transaction ends."""
    ids = json_list([job_id for job_id, _ in claims])
    pairs = json_list([job_id + token for job_id, token in claims])
    held = set(tx.execute(sql("fence"), {"ids": ids, "pairs": pairs}).fetchall())
    return [(job_id, token) in held for job_id, token in claims]


def note(tx: Transaction, command: WriteNotes) -> list[bool]:
    """Write what running jobs report of themselves."""
    return [_note(tx, one) for one in command.notes]


def _note(tx: Transaction, note: Note) -> bool:
    progress = None if note.progress is None else msgspec.json.encode(note.progress).decode()
    parameters = {"job_id": note.job_id, "token": note.token, "progress": progress, "lines": len(note.lines)}
    row = tx.row("note", parameters)
    if row is None:
        return False
    seq, delivery, last = row
    first = last - len(note.lines) + 1
    for line, (level, text) in enumerate(note.lines, first):
        tx.run("write_log_line", (seq, line, tx.now, level, shortened(text, MAX_LOG_LINE), delivery))
    if last > LOG_LINES_KEPT:
        tx.run("forget_old_log", {"seq": seq, "last": last - LOG_LINES_KEPT})
    return True
