"""While a claim is held: renewals, the fence of a transaction, progress and log lines."""

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

from windlass.core.commands import RenewClaims, WriteNotes
from windlass.core.ids import JobId
from windlass.core.job import Note, Progress, Token
from windlass.core.names import LOG_LINES_KEPT, MAX_LOG_LINE, shortened
from windlass.core.requests import Renewed
from windlass.kit.records import in_utf8
from windlass.stores.postgres.moves.fence import Lock, claim_names, fence
from windlass.stores.postgres.rows import Standing, json_text, plain_text
from windlass.stores.postgres.work import Changes, Many, Rows, Statement, Work

TOO_MANY_LINES: Final = 2147400000
COUNT_ON_FROM: Final = 2147000000


class Untouched(Renewed):
    """The claim holds, but somebody has its job locked: its lease ends when it did before."""


def renew(changes: Changes, command: RenewClaims) -> Work[list[Renewed | None]]:
    """Extend leases, and wait for nobody: an answer that is `Untouched` may be asked for again by `renew_locked`."""
    rows = yield Statement("renew", _renewal(changes, command))
    return _renewed(command.claims, rows)


def renew_locked(changes: Changes, command: RenewClaims) -> Work[list[Renewed | None]]:
    """Extend leases, waiting for whoever has the jobs locked."""
    rows = yield Statement("renew_locked", _renewal(changes, command))
    return _renewed(command.claims, rows)


def fence_all(claims: Sequence[tuple[JobId, Token]]) -> Work[list[bool]]:
    """Return which claims hold; nobody can take these jobs back before the transaction ends."""
    fenced = yield from fence(claims, Lock.SHARE)
    return [isinstance(fenced.held(job_id, token), Standing) for job_id, token in claims]


def _renewal(changes: Changes, command: RenewClaims) -> dict[str, object]:
    return {"now": changes.now, "lease": command.lease, **claim_names(command.claims)}


def _renewed(claims: Sequence[tuple[JobId, Token]], rows: Rows) -> list[Renewed | None]:
    held: dict[tuple[str, str], Renewed] = {}
    # one that was renewed comes after itself as it was
    for job_id, token, expires_at, flag, touched in sorted(rows, key=itemgetter(-1)):
        held[job_id, token] = Renewed(expires_at, flag) if touched else Untouched(expires_at, flag)
    return [held.get((job_id, token)) for job_id, token in claims]


class _Page:
    """What a running job has noted so far, and what is to be added in this call."""

    def __init__(self, job: Standing) -> None:
        self.seq = job.seq
        self.delivery = job.delivery
        # as in note.sql, where a number that something else has written must be one to count on from
        self.last = COUNT_ON_FROM if job.log_lines > TOO_MANY_LINES else max(job.log_lines, 0)
        self.progress: str | None = None
        self.lines: list[tuple[str, str]] = []

    def add(self, note: Note) -> None:
        if note.progress is not None:
            done, total, text = note.progress
            self.progress = json_text(Progress(done, total, None if text is None else in_utf8(text)))
        self.lines += note.lines


class _Line(NamedTuple):
    """The values of one line in `write_log_lines.sql`."""

    seq: int
    line: int
    level: str
    text: str
    delivery: int


def note(changes: Changes, command: WriteNotes) -> Work[list[bool | None]]:
    """Write what running jobs report of themselves, and wait for nobody; the last lines of each are kept.

    None for each whose claim holds, but whose job somebody has locked.
    """
    notes = command.notes
    fenced = yield from fence([(note.job_id, note.token) for note in notes], Lock.NOTE)
    pages: dict[JobId, _Page] = {}
    answers: list[bool | None] = []
    for one in notes:
        job = fenced.held(one.job_id, one.token)
        answers.append(None if job is None else isinstance(job, Standing))
        if isinstance(job, Standing):
            pages.setdefault(job.id, _Page(job)).add(one)
    noted = [page for page in pages.values() if page.lines or page.progress is not None]
    if noted:
        yield Many("note", [_note(page) for page in noted])
    yield from _write_lines(changes, [page for page in noted if page.lines])
    return answers


def _write_lines(changes: Changes, pages: Sequence[_Page]) -> Work[None]:
    if not pages:
        return
    columns = zip(*(line for page in pages for line in _lines_of(page)), strict=True)
    seqs, lines, levels, texts, deliveries = map(list, columns)
    parameters = {
        "now": changes.now,
        "seqs": seqs,
        "lines": lines,
        "levels": levels,
        "texts": texts,
        "deliveries": deliveries,
    }
    yield Statement("write_log_lines", parameters)
    # what was past the limit before has been forgotten before
    past = [_past(page) for page in pages if page.last + len(page.lines) > LOG_LINES_KEPT]
    if past:
        yield Many("forget_old_log", past)


def _note(page: _Page) -> dict[str, object]:
    return {"seq": page.seq, "progress": page.progress, "lines": len(page.lines)}


def _past(page: _Page) -> dict[str, object]:
    last = page.last - LOG_LINES_KEPT
    return {"seq": page.seq, "after": last, "until": last + len(page.lines)}


def _lines_of(page: _Page) -> Iterator[_Line]:
    for line, (level, text) in enumerate(page.lines, page.last + 1):
        yield _Line(page.seq, line, plain_text(level), plain_text(shortened(text, MAX_LOG_LINE)), page.delivery)
