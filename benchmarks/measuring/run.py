"""Takes the measurements, each in a process of its own, in folders that are gone afterwards with their databases."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from benchmarks.measuring.child import Answer, Introduction, Request
from benchmarks.measuring.contestant import Trial
from benchmarks.measuring.measurements import MEASUREMENTS
from benchmarks.measuring.plan import Step
from benchmarks.measuring.process import MeasurementFailed, ask
from benchmarks.servers import postgres_databases, redis_databases

SECONDS = {"introduce": 60.0, "measure": 300.0, "prepare": 1_800.0}
LARGE_SECONDS = 1_800.0
LARGE = frozenset(measurement.name for measurement in MEASUREMENTS if measurement.part == "large")


class Finding(msgspec.Struct, frozen=True):
    """What one step found, or why it found nothing."""

    measurement: str
    contestant: str
    repetition: int
    answer: Answer | None = None
    failure: str | None = None


class Runner:
    """Runs steps in subfolders of the given trial's folder; the trial also gives all sizes."""

    def __init__(self, trial: Trial) -> None:
        """Write nothing before the first step."""
        self._trial = trial

    def introduce(self, contestant: str) -> Introduction:
        """Ask a contestant who it is; one that cannot be run here says why in `missing`."""
        folder = self._fresh("introduction")
        try:
            answer = self._ask("introduce", contestant, "", folder)
        except MeasurementFailed as failure:
            return Introduction(contestant, missing=failure.reason)
        finally:
            _remove(folder)
        return answer.introduction or Introduction(contestant, missing="it did not introduce itself")

    def take(self, steps: Sequence[Step], contestants: Mapping[str, Introduction]) -> Iterator[Finding]:
        """Yield one finding per step; a step that fails does not keep the others from being taken."""
        for step in steps:
            prepared = step.measurement.name in contestants[step.contestant].prepares
            try:
                answer = self._measure_prepared(step) if prepared else self._measure(step)
            except MeasurementFailed as failure:
                yield Finding(step.measurement.name, step.contestant, step.repetition, failure=failure.reason)
            else:
                yield Finding(step.measurement.name, step.contestant, step.repetition, answer)

    def _measure(self, step: Step) -> Answer:
        folder = self._fresh("trial")
        try:
            return self._ask("measure", step.contestant, step.measurement.name, folder)
        finally:
            _remove(folder)

    def _measure_prepared(self, step: Step) -> Answer:
        """Use the folder that the first repetition prepared; it goes when another one is needed, or with the run."""
        folder = self._trial.folder / f"prepared-{step.contestant}-{step.measurement.name}"
        if not folder.exists():
            for old in self._trial.folder.glob("prepared-*"):
                _remove(old)
            folder.mkdir()
            try:
                self._ask("prepare", step.contestant, step.measurement.name, folder)
            except MeasurementFailed:
                _remove(folder)
                raise
        return self._ask("measure", step.contestant, step.measurement.name, folder)

    def _fresh(self, name: str) -> Path:
        folder = self._trial.folder / name
        folder.mkdir()
        return folder

    def _ask(
        self, action: Literal["introduce", "prepare", "measure"], contestant: str, measurement: str, folder: Path
    ) -> Answer:
        trial = msgspec.structs.replace(self._trial, path=str(folder))
        request = Request(action, contestant, trial, measurement)
        seconds = LARGE_SECONDS if measurement in LARGE else SECONDS[action]
        return ask(request, answer=self._trial.folder / "answer.json", seconds=seconds)


def _remove(folder: Path) -> None:
    postgres_databases.drop_all(folder)
    redis_databases.empty(folder)
    shutil.rmtree(folder)
