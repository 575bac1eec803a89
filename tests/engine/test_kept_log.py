import asyncio
import io
import logging
from collections.abc import Callable, Sequence

import pytest

import windlass
from windlass.core.job import LogLine, Note
from windlass.core.settings import UNSET
from windlass.engine.context import running
from windlass.engine.kept_log import LAST_LINES, LINES_PER_SECOND, JobLogHandler, KeptLines, text_of

theirs = logging.getLogger("theirs")


@pytest.fixture(autouse=True)
def everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)


def handlers() -> list[logging.Handler]:
    return [each for each in logging.getLogger().handlers if isinstance(each, JobLogHandler)]


def a_record(message: object = "said", *args: object, level: int = logging.INFO, second: int = 0) -> logging.LogRecord:
    record = logging.LogRecord("theirs", level, "here.py", 1, message, args, None)
    record.created = float(second)
    return record


async def lines_of(app: windlass.App, kind: str, config: windlass.ServerConfig | None = None) -> list[tuple[str, str]]:
    """Return what is kept with a job of this kind, which a server has worked."""
    async with app:
        async with windlass.Server(app, config):
            job = await app.client.enqueue("default", {}, kind=kind)
            await app.client.wait(job.id, timeout=30)
        [found] = await app.client.store.get([job.id])
        log: tuple[LogLine, ...] = () if found is None else found.log
        return [(line.level, line.text) for line in log]


@pytest.mark.parametrize("kind", ["in_the_loop", "in_a_thread"])
async def test_what_a_handler_logs_is_kept_with_its_job_between_its_own_lines(kind: str) -> None:
    app = windlass.App("memory://")

    def say() -> None:
        windlass.current().log.info("first")
        theirs.debug("too little")
        theirs.info("%s of %d", "one", 3)
        theirs.warning("careful")
        theirs.critical("help")
        logging.getLogger("windlass.of_our_own").error("never")
        windlass.current().log.info("last")

    @app.job
    async def in_the_loop() -> None:
        await asyncio.create_task(_later(say))

    @app.job
    def in_a_thread() -> None:
        say()

    assert await lines_of(app, kind) == [
        ("info", "first"),
        ("info", "theirs: one of 3"),
        ("warning", "theirs: careful"),
        ("error", "theirs: help"),
        ("info", "last"),
    ]
    assert handlers() == []


async def _later(say: Callable[[], None]) -> None:
    say()


@pytest.mark.parametrize("level, kept", [("debug", 3), ("error", 1), ("off", 0)])
async def test_the_setting_says_from_which_level_on(level: str, kept: int) -> None:
    app = windlass.App("memory://")

    @app.job
    async def work() -> None:
        theirs.debug("a")
        theirs.info("b")
        theirs.error("c")

    config = windlass.ServerConfig(job_log_level=level)  # type: ignore[arg-type]
    assert len(await lines_of(app, "work", config)) == kept


async def test_a_driver_that_logs_while_it_writes_lines_makes_no_lines_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = windlass.App("memory://")
    note, settle = app.client.store.note, app.client.store.settle
    jobs: list[object] = []

    async def chatty_note(notes: list[Note]) -> Sequence[bool | None]:
        theirs.warning("a driver writes %d notes", len(notes))
        return await note(notes)

    async def chatty_settle(*args: object) -> object:
        jobs.append(running.get())
        return await settle(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(app.client.store, "note", chatty_note)
    monkeypatch.setattr(app.client.store, "settle", chatty_settle)

    @app.job
    async def work() -> None:
        theirs.warning("mine")
        await asyncio.sleep(0)

    assert await lines_of(app, "work") == [("warning", "theirs: mine")]
    # nor does it settle in the name of one job what may be the ends of many
    assert jobs == [UNSET]


async def test_jobs_in_place_keep_their_lines_too() -> None:
    app = windlass.App("memory://", eager=True)

    @app.job
    async def work() -> None:
        theirs.info("mine")

    async with app:
        job = await (await work.enqueue()).job()
        [found] = await app.client.store.get([job.id])

    assert found is not None
    assert [line.text for line in found.log] == ["theirs: mine"]
    assert handlers() == []


def test_a_second_has_only_so_many_lines_and_says_so_once() -> None:
    kept: list[tuple[str, str]] = []
    lines = KeptLines(logging.INFO, lambda level, text: kept.append((level, text)))

    for second in (7, 8):
        for _ in range(LINES_PER_SECOND + 10):
            lines.take(a_record(second=second))

    assert len(kept) == 2 * (LINES_PER_SECOND + 1)
    assert kept[LINES_PER_SECOND] == ("warning", "more than 50 lines in this second: the others are left out")


def test_an_exception_comes_with_the_end_of_its_traceback() -> None:
    def deeper(depth: int) -> None:
        if depth:
            (deeper if depth % 2 else deeper_still)(depth - 1)
        message = "at the bottom"
        raise ValueError(message)

    def deeper_still(depth: int) -> None:
        # two by turns: lines that are the same are left out of a traceback
        deeper(depth)

    record = a_record("x" * 5_000)
    try:
        deeper(30)
    except ValueError as error:
        record.exc_info = (ValueError, error, error.__traceback__)
    text = text_of(record)

    first, *trace = text.splitlines()
    assert len(first.encode()) <= 2_048
    assert len(trace) == LAST_LINES
    assert trace[-1] == "ValueError: at the bottom"


class Unspeakable:
    def __str__(self) -> str:
        message = "not today"
        raise RuntimeError(message)

    __repr__ = __str__


@pytest.mark.parametrize(
    "record, text",
    [
        (a_record("%d", "no number"), "theirs: %d ('no number',)"),
        (a_record("%s", Unspeakable()), "theirs: str that cannot be put together: RuntimeError"),
        (a_record(Unspeakable()), "theirs: Unspeakable that cannot be put together: RuntimeError"),
    ],
)
def test_what_cannot_be_said_is_a_line_and_no_error(record: logging.LogRecord, text: str) -> None:
    assert text_of(record) == text


def nothing_is_set_up(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Return what goes to stderr, from here on, where a program has not set up its log."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    seen = io.StringIO()
    last = logging.StreamHandler(seen)
    last.setLevel(logging.WARNING)
    monkeypatch.setattr(logging, "lastResort", last)
    return seen


async def test_a_program_that_has_not_set_up_its_log_sees_warnings_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = nothing_is_set_up(monkeypatch)
    app, own = windlass.App("memory://"), io.StringIO()
    elsewhere = logging.getLogger("elsewhere")
    elsewhere.addHandler(logging.StreamHandler(own))

    @app.job
    async def work() -> None:
        theirs.info("nobody sees it")
        theirs.warning("inside")

    async with app, windlass.Server(app):
        theirs.warning("outside")
        elsewhere.warning("seen there")
        await (await work.enqueue()).result(timeout=30)
    elsewhere.handlers.clear()

    assert seen.getvalue().splitlines() == ["outside", "inside"]
    assert own.getvalue() == "seen there\n"
