"""One run, ready to be written: as JSON here, as text by `table`."""

import msgspec

from benchmarks.measuring.child import Introduction
from benchmarks.measuring.run import Finding
from benchmarks.reporting.summary import Row


class Report(msgspec.Struct, frozen=True):
    """All that is known about one run: `rows` is what the findings come to."""

    machine: dict[str, str]
    sizes: dict[str, int]
    contestants: list[Introduction]
    missing: list[Introduction]
    rows: list[Row]
    findings: list[Finding]

    def json(self) -> bytes:
        """Return everything, every repetition and sample included."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"

    def preamble(self) -> str:
        """Return the circumstances in one line."""
        facts = self.machine | {name: f"{value:,}" for name, value in self.sizes.items()}
        return ", ".join(f"{name} {value}" for name, value in facts.items())
