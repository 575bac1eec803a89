"""What all repetitions of a run come to: medians, and how the contestants compare."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from benchmarks.measuring.child import Answer, Introduction
from benchmarks.measuring.contestant import Role
from benchmarks.measuring.measurements import MEASUREMENTS, Figure, Target, Unit
from benchmarks.measuring.run import Finding
from benchmarks.measuring.workload import percentile


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of one contestant.

    `lowest` and `highest` are those of single repetitions. `over_peer` and `over_engine` say how many times as good
    it is as the best peer and as the bare engine: above one is better, also for durations. A row without a value
    says in `note` why.
    """

    part: str
    title: str
    unit: Unit
    contestant: str
    role: Role
    value: float | None = None
    lowest: float | None = None
    highest: float | None = None
    over_peer: float | None = None
    over_engine: float | None = None
    target: Target | None = None
    reached: bool | None = None
    note: str = ""


def summarise(findings: Sequence[Finding], contestants: Sequence[Introduction]) -> list[Row]:
    """Return the rows of the report, in the order of the measurements and of the contestants."""
    rows: list[Row] = []
    for measurement in MEASUREMENTS:
        for figure in measurement.figures:
            group = [
                _row(measurement.part, figure, contestant, found)
                for contestant in contestants
                if (found := _findings_of(findings, measurement.name, contestant.name))
            ]
            rows += _compared([row for row in group if row is not None])
    return rows


def _findings_of(findings: Sequence[Finding], measurement: str, contestant: str) -> list[Finding]:
    return [found for found in findings if found.measurement == measurement and found.contestant == contestant]


def _row(part: str, figure: Figure, contestant: Introduction, findings: Sequence[Finding]) -> Row | None:
    answers = [finding.answer for finding in findings if finding.answer is not None]
    failures = [finding.failure for finding in findings if finding.failure is not None]
    target = figure.targets.get(contestant.name)
    if figure.judged_only and target is None:
        return None
    row = Row(part, figure.title, figure.unit, contestant.name, contestant.role)
    if not answers:
        return replace(row, note=f"failed: {failures[0]}")
    singles = [value for answer in answers if (value := _value(figure, [answer])) is not None]
    value = _value(figure, answers)
    if value is None:
        return None
    return replace(
        row,
        value=value,
        lowest=min(singles),
        highest=max(singles),
        target=target,
        reached=None if target is None else _as_good(figure.unit, value, target.floor) >= 1,
        note=_note(figure, answers, failures),
    )


def _value(figure: Figure, answers: Sequence[Answer]) -> float | None:
    """Return the percentile of the pooled samples, or the median of the figures; None when there are none."""
    if figure.percent is not None:
        pooled = [sample for answer in answers for sample in answer.outcome.samples.get(figure.name, [])]
        return percentile(pooled, figure.percent) if pooled else None
    values = [answer.outcome.figures[figure.name] for answer in answers if figure.name in answer.outcome.figures]
    return median(values) if values else None


def _note(figure: Figure, answers: Sequence[Answer], failures: Sequence[str]) -> str:
    parts = [f"{len(failures)} failed: {failures[0]}"] if failures else []
    cpu = [answer.outcome.figures["cpu_us"] for answer in answers if "cpu_us" in answer.outcome.figures]
    if cpu and figure.unit is Unit.RATE:
        parts.append(f"{median(cpu):.1f} µs CPU per job, {median(answer.peak_mib for answer in answers):.0f} MiB")
    if any(answer.outcome.figures.get("cut_short") for answer in answers):
        parts.append("time was up first")
    return "; ".join(parts)


def _compared(rows: Sequence[Row]) -> list[Row]:
    peers = {row.contestant: row.value for row in rows if row.role is Role.PEER and row.value is not None}
    engines = {row.contestant: row.value for row in rows if row.role is Role.ENGINE and row.value is not None}
    return [_judged(replace(row, over_peer=_over(row, peers), over_engine=_over(row, engines))) for row in rows]


def _judged(row: Row) -> Row:
    """Hold a row also against the best peer where its target says so, and one ran."""
    if row.over_peer is None or row.target is None or row.target.over_peer is None:
        return row
    return replace(row, reached=row.reached and row.over_peer >= row.target.over_peer)


def _over(row: Row, others: Mapping[str, float]) -> float | None:
    """Compare with the best of the others; a share is a comparison already."""
    if row.value is None or not others or row.role in {Role.ENGINE, Role.MODEL} or row.unit is Unit.SHARE:
        return None
    best = max(others.values()) if row.unit.more_is_better else min(others.values())
    return _as_good(row.unit, row.value, best)


def _as_good(unit: Unit, value: float, other: float) -> float:
    """Return how many times as good `value` is as `other`."""
    return value / other if unit.more_is_better else other / value
