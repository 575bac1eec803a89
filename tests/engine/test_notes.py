import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from windlass.core.errors import InvalidValue, StoreUnavailable
from windlass.core.ids import JobId
from windlass.core.job import Note, Progress, Token
from windlass.core.names import MAX_LOG_LINE
from windlass.engine.notes import Notes, joined, line_of, progress_of

JOB = JobId("01938c6e-1111-7000-8000-000000000001")


class Taking:
    """As much of a store as notes need."""

    def __init__(self) -> None:
        self.calls: list[list[Note]] = []
        self.go = asyncio.Event()
        self.go.set()
        self.errors: list[Exception] = []
        self.locked: set[str] = set()

    async def note(self, notes: Sequence[Note]) -> list[bool | None]:
        await self.go.wait()
        if self.errors:
            raise self.errors.pop()
        self.calls.append(list(notes))
        return [None if note.token in self.locked else True for note in notes]


class Talkative(Taking):
    """While it writes, something is noted again."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: Notes | None = None

    async def note(self, notes: Sequence[Note]) -> list[bool | None]:
        if self.notes is not None:
            self.notes.add(a_line("one more"))
        await asyncio.sleep(0)
        return await super().note(notes)


def a_line(text: str, of: str = "a") -> Note:
    return Note(JOB, Token(of), lines=(("info", text),))


def notes_of(store: Any) -> Notes:  # noqa: ANN401 - as much of a store as is needed
    return Notes(store)


async def test_what_gathers_while_one_call_is_on_its_way_goes_out_together() -> None:
    store = Taking()
    notes = notes_of(store)
    store.go.clear()
    notes.add(a_line("one"))
    await asyncio.sleep(0)
    for text in ("two", "three"):
        notes.add(a_line(text))

    store.go.set()
    await notes.flush()

    assert [[line for note in call for line in note.lines] for call in store.calls] == [
        [("info", "one")],
        [("info", "two"), ("info", "three")],
    ]
    assert notes.written == notes.noted


async def test_a_flush_is_not_held_up_by_what_is_noted_after_it() -> None:
    store = Talkative()
    notes = store.notes = notes_of(store)
    notes.add(a_line("before"))

    async with asyncio.timeout(10):
        await notes.flush()

    assert notes.written < notes.noted
    store.notes = None
    await notes.flush()


async def test_notes_come_from_any_thread() -> None:
    store = Taking()
    notes = notes_of(store)

    def many() -> None:
        for number in range(100):
            notes.add(a_line(f"{number} of {threading.get_ident()}"))

    await asyncio.to_thread(many)
    await notes.flush()

    assert sum(len(note.lines) for call in store.calls for note in call) == 100


@pytest.mark.parametrize("error", [StoreUnavailable("away"), RuntimeError("a bug")])
async def test_what_the_store_does_not_take_is_said_and_survived(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    store = Taking()
    notes = notes_of(store)
    store.errors.append(error)
    notes.add(a_line("lost"))
    await notes.flush()

    notes.add(a_line("kept"))
    await notes.flush()

    assert [note.lines for call in store.calls for note in call] == [(("info", "kept"),)]
    assert "1 notes of jobs could not be written" in caplog.text


async def test_what_a_locked_job_notes_is_kept_and_holds_up_nobody() -> None:
    store = Taking()
    store.locked = {"a"}
    notes = notes_of(store)
    notes.add(a_line("one"))
    await notes.flush()
    assert notes.written == notes.noted
    store.locked.clear()

    notes.add(a_line("other", of="b"))
    await notes.flush()

    assert store.calls[1:] == [[a_line("one"), a_line("other", of="b")]]
    assert notes.kept == {}


async def test_what_is_kept_of_a_claim_is_taken_up_before_its_end() -> None:
    store = Taking()
    store.locked = {"a", "b"}
    notes = notes_of(store)
    notes.add(a_line("one"))
    notes.add(a_line("other", of="b"))
    await notes.flush()
    store.locked = {"b"}

    notes.take_up([Token("a"), Token("c")])
    await notes.flush()

    assert sorted(note.token for note in store.calls[-1]) == ["a", "b"]
    assert list(notes.kept) == ["b"]


async def test_a_job_that_stays_locked_keeps_no_more_than_the_last_lines(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("windlass.engine.notes.MOST_LINES", 3)
    store = Taking()
    store.locked = {"a"}
    notes = notes_of(store)

    for number in range(5):
        notes.add(a_line(str(number)))
        await notes.flush()
    store.locked.clear()
    notes.add(a_line("b", of="b"))
    await notes.flush()

    assert store.calls[-1][0].lines == (("info", "2"), ("info", "3"), ("info", "4"))
    assert "1 log lines of jobs were dropped" in caplog.text


async def test_too_many_lines_are_dropped_and_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("windlass.engine.notes.MOST_LINES", 3)
    store = Taking()
    notes = notes_of(store)

    for number in range(5):
        notes.add(a_line(str(number)))
    await notes.flush()

    assert sum(len(note.lines) for call in store.calls for note in call) == 3
    assert "2 log lines of jobs were dropped" in caplog.text


def test_the_newest_progress_of_each_claim_and_all_its_lines_are_one_note() -> None:
    notes = [
        Note(JOB, Token("a"), Progress(1)),
        a_line("one"),
        a_line("other", of="b"),
        Note(JOB, Token("a"), Progress(2)),
        a_line("two"),
    ]

    assert joined(notes) == [
        Note(JOB, Token("a"), Progress(2), (("info", "one"), ("info", "two"))),
        a_line("other", of="b"),
    ]


def test_a_text_is_made_such_that_it_can_be_stored() -> None:
    number: Any = 42

    assert line_of("a \ud800 b") == "a \\ud800 b"
    assert line_of(number) == "42"
    assert len(line_of("x" * 100_000)) <= MAX_LOG_LINE


@pytest.mark.parametrize("done", [float("nan"), float("inf"), float("-inf")])
def test_progress_is_a_number(done: float) -> None:
    assert progress_of(1, 2, "half") == Progress(1.0, 2.0, "half")
    with pytest.raises(InvalidValue):
        progress_of(done, None, None)
    with pytest.raises(InvalidValue):
        progress_of(1, done, None)
