"""While a claim is held: renewals, progress and log lines."""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

import msgspec

from windlass.core.duration import later, to_micros
from windlass.core.ids import JobId
from windlass.core.job import Note, Token
from windlass.core.names import LOG_LINES_KEPT, MAX_LOG_LINE, shortened
from windlass.core.requests import Renewed
from windlass.stores.sqlite.rows import json_list
from windlass.stores.sqlite.statements import sql
from windlass.stores.sqlite.transaction import Transaction


class RenewCall(NamedTuple):
    """One caller's claims, to hold for `lease` from now."""

    claims: Sequence[tuple[JobId, Token]]
    lease: timedelta


def renew(tx: Transaction, calls: list[RenewCall]) -> list[list[Renewed | None]]:
    """Extend the leases of every call, in one statement each."""
    return [_renew(tx, call) for call in calls]


def _renew(tx: Transaction, call: RenewCall) -> list[Renewed | None]:
    expires_at = later(tx.moment, call.lease)
    ids = json_list([job_id for job_id, _ in call.claims])
    pairs = json_list([job_id + token for job_id, token in call.claims])
    parameters = {"ids": ids, "pairs": pairs, "lease_expires_at": to_micros(expires_at)}
    rows = tx.execute(sql("renew"), parameters).fetchall()
    flags = {(job_id, token): bool(flag) for job_id, token, flag in rows}
    pairs_held = ((job_id, token) for job_id, token in call.claims)
    return [Renewed(expires_at, flags[claim]) if claim in flags else None for claim in pairs_held]


def fence(tx: Transaction, claims: Sequence[tuple[JobId, Token]]) -> list[bool]:
    """Tell which claims hold, with the write lock taken: nobody can take them back before the transaction ends."""
    ids = json_list([job_id for job_id, _ in claims])
    pairs = json_list([job_id + token for job_id, token in claims])
    held = set(tx.execute(sql("fence"), {"ids": ids, "pairs": pairs}).fetchall())
    return [(job_id, token) in held for job_id, token in claims]


def note(tx: Transaction, calls: list[Sequence[Note]]) -> list[list[bool]]:
    """Write what running jobs report of themselves."""
    return [[_note(tx, one) for one in notes] for notes in calls]


def _note(tx: Transaction, note: Note) -> bool:
    progress = None if note.progress is None else msgspec.json.encode(note.progress).decode()
    row = tx.row("note", {"id": note.job_id, "token": note.token, "progress": progress, "lines": len(note.lines)})
    if row is None:
        return False
    seq, delivery, last = row
    first = last - len(note.lines) + 1
    for line, (level, text) in enumerate(note.lines, first):
        tx.run("write_log_line", (seq, line, tx.now, level, shortened(text, MAX_LOG_LINE), delivery))
    if last > LOG_LINES_KEPT:
        tx.run("forget_old_log", (seq, last - LOG_LINES_KEPT))
    return True
