from datetime import UTC, datetime, timedelta

from windlass.core.stats import Totals
from windlass.http.dashboard import charts
from windlass.http.dashboard.steps import MINUTE, SPANS, Happened, Steps, stepped

NOW = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC)
THIS = NOW.replace(second=0)


def an_hour(minutes: dict[int, Happened], *, known: int = 60) -> Steps:
    """Return the last hour; minutes are counted back from the running one."""
    found = {THIS - MINUTE * back: happened for back, happened in minutes.items()}
    return stepped(found, SPANS["1h"], now=NOW, known_since=THIS - MINUTE * (known - 1))


def counted(**counts: int) -> Happened:
    return Happened(Totals(**counts))


def some_ran() -> Happened:
    """Return some attempts that ran for up to a second."""
    happened = Happened()
    happened.ran[7] = 10
    return happened


def lines(chart: charts.Chart) -> dict[str, str]:
    return {line.look: line.path for line in chart.lines}


def test_a_column_is_as_high_as_its_share_of_the_axis() -> None:
    chart = charts.throughput(an_hour({59: counted(succeeded=10), 58: counted(succeeded=5)}))

    # the axis reaches to 10, the drawing is 120 high
    assert lines(chart)["good column"] == "M1 120V0h8V120zM11 120V60h8V120z"


def test_the_minute_that_runs_is_drawn_as_one_that_is_not_over() -> None:
    chart = charts.throughput(an_hour({0: counted(succeeded=4)}))

    assert lines(chart) == {"good column": "", "good column faded": "M591 120V0h8V120z"}


def test_a_single_one_among_thousands_can_be_seen() -> None:
    chart = charts.throughput(an_hour({1: counted(succeeded=1), 2: counted(succeeded=9_999)}))

    assert "M581 120V119h8V120z" in lines(chart)["good column"]


def test_attempts_that_are_made_again_stand_on_those_that_were_the_last() -> None:
    chart = charts.failures(an_hour({59: counted(dead=2, retried=2)}))

    assert lines(chart)["bad column"] == "M1 120V60h8V120z"
    assert lines(chart)["poor column"] == "M1 60V0h8V60z"
    assert chart.readings[0] == "2 dead, 2 to be tried again"
    assert [(each.name, each.value) for each in chart.legend] == [("dead", "2"), ("to be tried again", "2")]


def test_where_nothing_ran_the_line_of_latency_is_broken() -> None:
    chart = charts.latency(an_hour({59: some_ran(), 58: some_ran(), 56: some_ran()}))

    assert lines(chart)["busy"].count("M") == 2
    assert lines(chart)["rest"] == ""
    assert chart.readings[0] == "waited -, ran 750 ms / 980 ms"
    assert chart.readings[2] == "waited -, ran -"
    assert "ran up to about 750 ms" in chart.summary


def test_what_is_beyond_all_bounds_is_drawn_at_the_top() -> None:
    waited = Happened()
    waited.waited[-1] = 1
    chart = charts.latency(an_hour({59: waited}))

    assert lines(chart)["rest"] == "M5 0h0"
    assert chart.legend[0].value == "over 2 h / over 2 h"


def test_depth_ends_at_what_is_unfinished_now() -> None:
    chart = charts.depth(an_hour({0: counted(enqueued=3)}), 4)

    assert (chart.readings[-2], chart.readings[-1]) == ("1 unfinished", "4 unfinished")
    assert lines(chart)["accent"].endswith("L595 0")
    assert lines(chart)["accent area"].endswith("L595 0V120H5z")
    assert chart.summary.endswith("at least 1, at most 4, latest 4.")


def test_of_what_is_not_read_yet_nothing_is_drawn() -> None:
    steps = an_hour({0: counted(succeeded=1), 1: counted(succeeded=1)}, known=2)
    chart, depth = charts.throughput(steps), charts.depth(steps, 7)

    assert chart.unknown == 58 * charts.STEP
    assert (chart.readings[57], chart.readings[58]) == ("not read yet", "1 succeeded")
    assert lines(depth)["accent"].startswith("M585 ")
    assert lines(charts.latency(an_hour({5: some_ran()}, known=2)))["busy"] == ""
    assert "at least 7" in depth.summary


def test_of_nothing_at_all_it_says_so() -> None:
    steps = an_hour({}, known=0)
    drawn = [charts.throughput(steps), charts.failures(steps), charts.latency(steps), charts.depth(steps, 0)]

    assert all(chart.is_empty for chart in drawn)
    assert charts.throughput(an_hour({})).summary == "Jobs that succeeded, in the last hour: none."


def test_times_below_a_chart_are_round_and_not_at_its_edges() -> None:
    for span in SPANS.values():
        moments = charts.throughput(stepped({}, span, now=NOW, known_since=NOW - timedelta(days=1))).moments

        assert 2 <= len(moments) <= 4
        assert all(moment.at.minute % 15 == 0 and 8 <= moment.place <= 92 for moment in moments)


def test_a_sparkline_is_as_high_as_its_most() -> None:
    assert charts.sparkline([0, 1, 100]) == "M0 20V20h1V18h1V0h1V20z"
    assert charts.sparkline([0, 0]) == ""
