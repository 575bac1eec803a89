"""A bar for work that takes a while, on stderr, where a person looks on."""

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

Advance = Callable[[int], None]


def person_watches() -> bool:
    """Whether stderr is a terminal that can draw over its lines."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def progress_bar(what: str, total: int | None) -> Generator[Advance]:
    """Give what tells that more is done, for the time of a block; nothing is drawn where nobody looks."""
    if not person_watches():
        yield lambda _: None
        return
    # a tenth of a second to load: only when a bar is drawn
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as drawn:
        bar = drawn.add_task(what, total=total)
        yield lambda count: drawn.update(bar, advance=count)
