"""How soon a fleet works at its usual rate again after its database was down."""

import statistics
import time
from bisect import bisect_right

from proofs.fleet.campaign import Outage, Plan
from proofs.ledger import Entry
from proofs.report import Report

SPAN = 2.0
"""Seconds over which a rate is taken."""
LEAST = 0.95
"""The share of the usual rate that has to come back."""
WITHIN = 30.0


def check_recovery(report: Report, plan: Plan, entries: list[Entry], outages: list[Outage]) -> None:
    """After each outage there are soon some seconds in which as much is done as in those before an outage."""
    epoch = time.time() - time.monotonic()
    ends = sorted(entry.at + epoch for entry in entries if entry.event == "ended")
    if not ends or not outages:
        report.needs("work between the outages", given=False)
        return
    usual = statistics.median(rate(ends, outage.down_at - SPAN) for outage in outages)
    borders = [*(outage.down_at for outage in outages[1:]), ends[-1]]
    found = [recovery(ends, outage.back_at, until, usual) for outage, until in zip(outages, borders, strict=True)]
    took = [each for each in found if each is not None]
    report.figure("jobs a second before an outage, the median", f"{usual:,.0f}")
    if took:
        middle, last = statistics.median(took), max(took)
        report.figure(f"seconds until {LEAST:.0%} of that were done again", f"median {middle:.1f}, at most {last:.1f}")
    report.never(
        f"returns to {LEAST:.0%} of that later than {WITHIN:g} s after {plan.killed} was back",
        [each for each in took if each > WITHIN],
    )
    # the next one may have come too soon to tell
    report.needs("a return to the usual rate after each outage", given=len(took) == len(outages))
    report.needs("work before each outage", given=usual > 0)


def rate(ends: list[float], since: float) -> float:
    """Return how many jobs a second have ended in the span that begins then."""
    return (bisect_right(ends, since + SPAN) - bisect_right(ends, since)) / SPAN


def recovery(ends: list[float], back_at: float, until: float, usual: float) -> float | None:
    """Return after how many seconds a span begins in which nearly the usual rate is reached, if one ends by then."""
    # a rate grows only where a span begins later and ends behind one more end: each end is tried as the last of a span
    moments = [back_at, *(end - SPAN for end in ends[bisect_right(ends, back_at + SPAN) :])]
    reached = (moment for moment in moments if moment + SPAN <= until and rate(ends, moment) >= LEAST * usual)
    return next((moment - back_at for moment in reached), None)
