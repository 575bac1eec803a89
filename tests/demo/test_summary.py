from dataclasses import replace

from tests.demo.given import JOBS, TOO_LATE, checked, without
from windlass.demo import summary
from windlass.demo.difference import Difference, Kind
from windlass.demo.second_reader import Row

LOST = Difference(Kind.LOST, "a", "is pending in the store")


def test_a_good_run_holds() -> None:
    code, text = summary.conclusion(checked(), None)

    assert code == summary.HELD
    assert text == "0 lost, 0 settled twice: ledger and store agree on all 7 jobs."


def test_a_run_that_shows_nothing_says_why() -> None:
    code, text = summary.conclusion(checked(events=without(TOO_LATE)), None)

    assert (code, text) == (summary.VOID, "This run shows nothing: no stale settlement was refused.")


def test_a_broken_run_without_a_difference_is_void() -> None:
    code, text = summary.conclusion(checked(), "fence")

    assert code == summary.VOID
    assert "fence" in text


def test_a_difference_is_named_with_its_job_and_outranks_a_void_run() -> None:
    report = replace(checked(), refused=0, differences=[LOST])

    code, text = summary.conclusion(report, None)

    assert code == summary.BROKEN
    assert "lost: 1\n    a: is pending in the store" in text


def test_a_difference_outranks_a_stop() -> None:
    code, _ = summary.conclusion(replace(checked(), differences=[LOST]), None, stopped=True)

    assert code == summary.BROKEN


def test_a_run_that_was_stopped_tells_what_waits() -> None:
    report = checked(enqueued="abcmpz", jobs=JOBS | {"z": Row("pending", 0)}, stopped=True)

    code, text = summary.conclusion(report, None, stopped=True)
    rows = {fact.name: fact.value for fact in summary.facts(report, 1.0)}

    assert code == summary.STOPPED
    assert text.startswith("Stopped.")
    assert (rows["waiting"], rows["lost"]) == ("1", "0")


def test_the_table_marks_what_broke() -> None:
    report = replace(checked(), differences=[LOST, LOST._replace(kind=Kind.STALE), LOST._replace(kind=Kind.NO_CAUSE)])

    marks = {fact.name: (fact.value, fact.good) for fact in summary.facts(report, 1.0) if fact.good is False}

    assert marks == {"lost": ("1", False), "settled twice": ("1", False), "other differences": ("1", False)}
