"""Progress and log lines of running jobs, written together."""

import asyncio
import logging
import math
import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from windlass.core.errors import Fenced, InvalidValue
from windlass.core.job import Note, Progress, Token
from windlass.core.names import MAX_LOG_LINE, shortened
from windlass.core.store import Store
from windlass.engine.context import of_no_job

logger = logging.getLogger("windlass")

MOST_LINES: Final = 10_000
"""Lines that may wait while the store is away; what comes then is dropped, and said so."""


class Notes:
    """Takes notes from any thread and writes what has gathered in one call; nobody waits for it."""

    def __init__(self, store: Store) -> None:
        """Write to `store`, from the running event loop."""
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._waiting: list[Note] = []
        self._writing: asyncio.Task[None] | None = None
        self.kept: dict[Token, Note] = {}
        """Notes of jobs that somebody has locked, for the next time when something is written, or the job ends."""
        self._guard = threading.Lock()
        self._dropped = 0
        self.noted = 0
        """Number of notes that were taken."""
        self.written = 0
        """Number of notes that were written, or could not be."""
        self._batch = asyncio.Event()
        # of nobody's job: what a driver logs while it writes the lines of one would be a line of it again
        self._context = of_no_job()

    def add(self, note: Note) -> None:
        """Write `note` soon."""
        with self._guard:
            if len(self._waiting) >= MOST_LINES:
                self._dropped += 1
                return
            first = not self._waiting
            self._waiting.append(note)
            self.noted += 1
        if first:
            if threading.get_ident() == self._thread:
                self._begin()
            else:
                # a loop that was closed writes nothing any more
                with suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._begin)

    async def flush(self) -> None:
        """Return when all that was noted so far is written, or could not be; what comes meanwhile holds nobody up."""
        noted = self.noted
        while self.written < noted:
            self._begin()
            await self._batch.wait()

    def take_up(self, tokens: Iterable[Token]) -> None:
        """Write soon what was kept of these claims, which are about to end."""
        again = [kept for token in tokens if (kept := self.kept.pop(token, None)) is not None]
        if again:
            with self._guard:
                self._waiting = again + self._waiting
                self.noted += len(again)
            self._begin()

    def _begin(self) -> None:
        if self._writing is None and self._waiting:
            self._writing = self._loop.create_task(self._write(), context=self._context.copy())

    async def _write(self) -> None:
        try:
            while self._waiting:
                with self._guard:
                    notes, self._waiting = self._waiting, []
                    dropped, self._dropped = self._dropped, 0
                count = len(notes)
                notes, self.kept = [*self.kept.values(), *notes], {}
                if dropped:
                    logger.warning("%d log lines of jobs were dropped: the store did not take them in time", dropped)
                try:
                    await self._write_these(notes)
                finally:
                    self.written += count
                    self._batch.set()
                    self._batch = asyncio.Event()
        finally:
            self._writing = None

    async def _write_these(self, notes: list[Note]) -> None:
        together = joined(notes)
        try:
            written = await self._store.note(together)
        except Fenced:
            # the server hears of it at once from those who settle and renew
            logger.debug("%d notes of jobs are not written: the store has another owner", len(notes))
        except Exception as error:  # noqa: BLE001 - progress and lines are for people: no job may fail by them
            logger.warning("%d notes of jobs could not be written: %s", len(notes), error)
        else:
            self._keep([note for note, done in zip(together, written, strict=True) if done is None])

    def _keep(self, locked: list[Note]) -> None:
        left = MOST_LINES
        for note in locked:
            lines = note.lines[max(len(note.lines) - left, 0) :]
            left -= len(lines)
            with self._guard:
                self._dropped += len(note.lines) - len(lines)
            self.kept[note.token] = note._replace(lines=lines)


def joined(notes: list[Note]) -> list[Note]:
    """Return one note for each claim: the newest progress, and all lines in their order."""
    by_token: dict[str, Note] = {}
    for note in notes:
        known = by_token.get(note.token)
        if known is None:
            by_token[note.token] = note
        else:
            progress = known.progress if note.progress is None else note.progress
            by_token[note.token] = Note(note.job_id, note.token, progress, (*known.lines, *note.lines))
    return list(by_token.values())


def progress_of(done: float, total: float | None, note: str | None) -> Progress:
    """Return progress as it can be stored; raises `InvalidValue` for what is no number."""
    return Progress(_number(done), None if total is None else _number(total), None if note is None else line_of(note))


def _number(value: float) -> float:
    number = float(value)
    if not math.isfinite(number):
        message = f"progress is counted in numbers, not {value!r}"
        raise InvalidValue(message)
    return number


def line_of(text: str) -> str:
    """Return a text as it can be stored: whatever was given for it, and whatever is in it, must not fail the job."""
    return shortened(str(text).encode(errors="backslashreplace").decode(), MAX_LOG_LINE)
