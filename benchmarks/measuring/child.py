"""One measurement in a process of its own: `python -m benchmarks.measuring.child REQUEST ANSWER`.

The request is JSON on the command line, the answer a JSON file, so that a contestant may print what it likes.
"""

import importlib.metadata
import sqlite3
import sys
from pathlib import Path
from typing import Literal

import msgspec

from benchmarks import contestants
from benchmarks.measuring.contestant import Contestant, Outcome, Role, Trial
from benchmarks.measuring.machine import peak_mib
from benchmarks.workloads import importing


class Request(msgspec.Struct, frozen=True):
    """What the child is to do: say who the contestant is, prepare a measurement's folder, or measure."""

    action: Literal["introduce", "prepare", "measure"]
    contestant: str
    trial: Trial
    measurement: str = ""


class Introduction(msgspec.Struct, frozen=True):
    """Who a contestant is and what it can do; `missing` says why it cannot be run here."""

    name: str
    role: Role = Role.PEER
    version: str = ""
    durability: str = ""
    how: str = ""
    measures: list[str] = []
    prepares: list[str] = []
    missing: str | None = None


class Answer(msgspec.Struct, frozen=True):
    """What the child found, and the most memory it held."""

    peak_mib: float
    introduction: Introduction | None = None
    outcome: Outcome = Outcome()


def main() -> None:
    """Do what is asked and write the answer."""
    request = msgspec.json.decode(sys.argv[1], type=Request)
    answer = _answer(request)
    Path(sys.argv[2]).write_bytes(msgspec.json.encode(answer))


def _answer(request: Request) -> Answer:
    if request.action == "introduce":
        return Answer(peak_mib(), introduction=_introduce(request))
    contestant = contestants.load(request.contestant)
    if request.action == "prepare":
        contestant.prepare[request.measurement](request.trial)
        return Answer(peak_mib())
    return Answer(outcome=_measure(contestant, request), peak_mib=peak_mib())


def _introduce(request: Request) -> Introduction:
    try:
        contestant = contestants.load(request.contestant)
    except ImportError as error:
        return Introduction(request.contestant, missing=str(error))
    return Introduction(
        name=contestant.name,
        role=contestant.role,
        version=_version(contestant),
        durability=contestant.durability(request.trial.folder),
        how=contestant.how,
        measures=[*contestant.measures, *(["import"] if contestant.role is not Role.MODEL else [])],
        prepares=list(contestant.prepare),
    )


def _measure(contestant: Contestant, request: Request) -> Outcome:
    if request.measurement == "import":
        return importing.measure(contestant.module, contestant.first_use)
    return contestant.measures[request.measurement](request.trial)


def _version(contestant: Contestant) -> str:
    if contestant.distribution is None:
        return sqlite3.sqlite_version
    try:
        return importlib.metadata.version(contestant.distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed, run from its source"


if __name__ == "__main__":
    main()
