"""What a campaign found: figures, violations, and whether any fault was delivered at all."""

import platform
import sqlite3
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import Enum

from proofs.code import code_in

EXAMPLES_SHOWN = 5


class Verdict(Enum):
    HOLDS = "holds"
    BROKEN = "BROKEN"
    VOID = "VOID: it proves nothing"


@dataclass
class Report:
    """A promise, the figures of one run against it, and what went against it."""

    part: str
    promise: str
    figures: dict[str, str] = field(default_factory=dict[str, str])
    violations: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    missing_evidence: list[str] = field(default_factory=list[str])
    store: str = f"SQLite {sqlite3.sqlite_version}"
    remark: str = ""
    """What has to be known to judge the figures."""
    code: str = field(default_factory=code_in)
    """What ran, as it was when the campaign began."""

    def figure(self, name: str, value: object) -> None:
        self.figures[name] = f"{value:,}" if isinstance(value, int) else str(value)

    def never(self, what: str, found: Collection[object]) -> None:
        """Count `found`, each of which goes against the promise."""
        self.figure(what, len(found))
        if found:
            self.violations[what] = [str(each) for each in list(found)[:EXAMPLES_SHOWN]]

    def needs(self, evidence: str, *, given: bool) -> None:
        """A run without this evidence is void, not green."""
        if not given:
            self.missing_evidence.append(evidence)

    @property
    def verdict(self) -> Verdict:
        if self.violations:
            return Verdict.BROKEN
        return Verdict.VOID if self.missing_evidence else Verdict.HOLDS

    def text(self) -> str:
        width = max(map(len, self.figures), default=0)
        lines = [f"{self.part}: {self.promise}", ""]
        lines += [f"  {name:<{width}}  {value}" for name, value in self.figures.items()]
        lines += ["", *self._remarks(), *self._details(), f"{self.part}: {self.verdict.value}", ""]
        return "\n".join(lines)

    def markdown(self) -> str:
        lines = [f"# {self.part}", "", self.promise, "", "| | |", "|---|---|"]
        lines += [f"| {name} | {value} |" for name, value in self.figures.items()]
        lines += ["", *self._remarks(), *self._details(), f"**{self.verdict.value}**", "", f"{self._where()}.", ""]
        return "\n".join(lines)

    def _details(self) -> list[str]:
        lines = [f"- {what}: {example}" for what, examples in self.violations.items() for example in examples]
        lines += [f"- not seen: {evidence}" for evidence in self.missing_evidence]
        return [*lines, ""] if lines else []

    def _remarks(self) -> list[str]:
        return [self.remark, ""] if self.remark else []

    def _where(self) -> str:
        machine = f"{platform.system()} {platform.machine()}"
        return ", ".join(filter(None, [f"Python {platform.python_version()}", self.store, machine, self.code]))
