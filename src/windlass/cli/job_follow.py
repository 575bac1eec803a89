"""One job, watched until its end."""

import sys
from collections.abc import Sequence
from typing import Final

import click

from windlass.cli.job_shown import log_text, progress_bar
from windlass.cli.output import note, on_terminal, print_text, room
from windlass.client.client import Client
from windlass.client.new_lines import new_lines
from windlass.client.spoken import progress_text
from windlass.core.errors import StoreUnavailable
from windlass.core.escaped import escaped
from windlass.core.job import Job, LogLine, Progress

EVERY: Final = 0.5
"""Seconds between two looks, however much happens: stores tell of no line or step."""


async def follow(client: Client, job: Job, *, quiet: bool) -> Job | None:
    """Show the new lines and the progress of a job until its end; return it as it was then, None when it is gone."""
    teller = _Silent() if quiet else _Teller(job)
    away = False
    try:
        while True:
            try:
                [found] = await client.store.get((job.id,))
            except StoreUnavailable as error:
                if not error.retryable:
                    raise
                # it may come back, and is told of once
                if not away:
                    note(f"warning: {error}")
                away = True
            else:
                away = False
                if found is not None:
                    teller.tell(found)
                if found is None or found.state.finished:
                    return found
            await client.clock.sleep(EVERY)
    finally:
        teller.close()


class _Silent:
    def tell(self, job: Job) -> None:
        """Say nothing."""

    def close(self) -> None:
        """Leave nothing behind."""


class _Teller(_Silent):
    """Prints what is new; on a terminal the progress stays on the last line, and is drawn over."""

    def __init__(self, job: Job) -> None:
        self._lines: Sequence[LogLine] = job.log
        self._standing = (job.state, job.delivery)
        self._progress: Progress | None = None
        self._drawn = False

    def tell(self, job: Job) -> None:
        standing = (job.state, job.delivery)
        if standing != self._standing and not job.state.finished:
            self._print(f"{job.state}, attempt {job.attempt} of {job.max_attempts}")
        for line in new_lines(self._lines, job.log):
            self._print(log_text(line))
        if job.progress is not None and job.progress != self._progress:
            self._show(job.progress)
        self._standing, self._lines, self._progress = standing, job.log, job.progress
        sys.stdout.flush()

    def close(self) -> None:
        self._wipe()

    def _print(self, text: str) -> None:
        self._wipe()
        print_text(text)

    def _show(self, progress: Progress) -> None:
        if not on_terminal():
            print_text(f"progress: {progress_text(progress)}")
            return
        from rich.cells import set_cell_size  # noqa: PLC0415 - rich is for terminals

        self._wipe()
        line = f"{progress_bar(progress)}{escaped(progress_text(progress))}"
        # a line that is too long would be broken by the terminal, and could not be drawn over
        click.echo(set_cell_size(line, room() - 1).rstrip(), nl=False)
        self._drawn = True

    def _wipe(self) -> None:
        if self._drawn:
            click.echo("\r\x1b[K", nl=False, color=True)
        self._drawn = False
