"""Calls that schemathesis makes up from the OpenAPI document, fitting and not: the API answers each as it says."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from unittest import mock

import msgspec

import windlass
from proofs.report import Report
from windlass.api.operations import ENQUEUE_BATCHES, LOG, NEWS, SET_MOVED, SETTLE
from windlass.api.roles import Role
from windlass.http import throttle
from windlass.http.app import Api
from windlass.http.auth import TokenAuth
from windlass.http.listening import Listening
from windlass.http.openapi import written
from windlass.http.sessions import Sessions
from windlass.http.tokens import KnownToken, find_token, hash_of
from windlass.system import SystemClock

PROMISE = "whatever is sent, no call ends in a mistake of the serving side, or in a reply that is not documented"
CALLERS: Final[Mapping[str, Role | None]] = {"anonymous": None, "viewer": Role.VIEW, "admin": Role.ADMIN}
PHASES: Final = ("examples", "coverage", "fuzzing", "stateful")
HASTE: Final = 200.0
_BY_ITEM: Final = frozenset(f"{each.method} {each.path}" for each in (SETTLE, ENQUEUE_BATCHES))
_LEFT_OUT: Final = (NEWS, LOG, SET_MOVED)
"""Streams, which do not end; and what would let every call after it be refused."""
MOST_SECONDS: Final = 1_800


@dataclass(frozen=True)
class Plan:
    cases: int = 5_000
    seed: int = 1
    phases: Sequence[str] = PHASES
    callers: Sequence[str] = tuple(CALLERS)


class HastyClock(SystemClock):
    """Time that flies: whoever waits for a minute waits for a third of a second."""

    def monotonic(self) -> float:
        return super().monotonic() * HASTE

    def call_later(self, delay: float, callback: Any) -> asyncio.TimerHandle:  # noqa: ANN401 - as the clock's
        return super().call_later(delay / HASTE, callback)

    async def sleep(self, delay: float) -> None:
        await super().sleep(delay / HASTE)


class RoleTokens:
    """A token for each role."""

    def __init__(self) -> None:
        self._known = [KnownToken(role, frozenset({role}), hash_of(secret_of(role))) for role in Role]

    def find(self, secret: str) -> KnownToken | None:
        return find_token(secret, self._known)

    def still_known(self, sha256: str) -> KnownToken | None:
        return next((each for each in self._known if each.sha256 == sha256), None)


def secret_of(role: Role) -> str:
    return "wl_" + role.ljust(43, "x")


def prove(folder: Path, plan: Plan) -> Report:
    report = Report("schemathesis", PROMISE)
    found = [run(folder, caller, plan) for caller in plan.callers]
    made = sum(each["test_cases"]["generated"] for each in found)
    for caller, each in zip(plan.callers, found, strict=True):
        report.figure(f"calls as {caller}", each["test_cases"]["generated"])
    report.figure("operations", found[0]["operations"]["tested"])
    failures = [_told(failure) for each in found for failure in each["failures"] if not _is_meant(failure)]
    report.never("replies that are not as the document tells", failures)
    report.never("runs that could not be done", [error for each in found for error in each["errors"]])
    report.needs(f"{plan.cases:,} calls", given=made >= plan.cases)
    return report


def run(folder: Path, caller: str, plan: Plan) -> Any:  # noqa: ANN401 - the JSON edge
    """Return what schemathesis reports of its calls as `caller`."""
    place = folder / caller
    place.mkdir(parents=True)
    (place / "openapi.json").write_bytes(written())
    role = CALLERS[caller]
    # it tries many wrong tokens from one address, and takes an advice to wait for a mistake
    patient = mock.patch.object(throttle, "FAILURES", sys.maxsize)
    with patient, _serving(f"sqlite:///{place}/jobs.db?synchronous=normal") as url:
        done = subprocess.run(
            [
                *(sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()", "run"),
                *("openapi.json", "--url", url, "--no-color", "--report", "json", "--report-json-path", "report.json"),
                *("--phases", ",".join(plan.phases), "--max-examples", str(_examples(plan)), "--seed", str(plan.seed)),
                *("--exclude-checks", ",".join(_unchecked(role))),
                *(word for each in _LEFT_OUT for word in ("--exclude-operation-id", each.name)),
                *("--continue-on-failure", "--request-timeout", "60"),
                *(() if role is None else ("--header", f"Authorization: Bearer {secret_of(role)}")),
            ],
            cwd=place,
            capture_output=True,
            text=True,
            timeout=MOST_SECONDS,
            check=False,
        )
    report = place / "report.json"
    assert report.exists(), done.stdout + done.stderr
    return msgspec.json.decode(report.read_bytes())


def _unchecked(role: Role | None) -> list[str]:
    # what the schema cannot say, as that a rule is a cron expression, is refused with a reason
    unchecked = ["positive_data_acceptance"]
    # who is not known is told nothing of methods
    return unchecked if role is not None else [*unchecked, "unsupported_method"]


def _examples(plan: Plan) -> int:
    # each operation is called about twice as often: with what fits, and with what does not
    return max(1, plan.cases // (100 * len(plan.callers)))


def _is_meant(failure: Any) -> bool:  # noqa: ANN401 - the JSON edge
    """Whether something is as it should be: of many things at once one that does not fit is refused alone, with 200."""
    return failure["type"] == "AcceptedNegativeData" and _BY_ITEM.issuperset(failure["operations"])


def _told(failure: Any) -> str:  # noqa: ANN401 - the JSON edge
    return str(failure)[:500]


@contextmanager
def _serving(url: str) -> Generator[str]:
    """Serve a store in a thread, whose loop nobody else uses."""
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    ready: list[str] = []
    up = threading.Event()

    async def serve() -> None:
        tokens = RoleTokens()
        async with windlass.connect(url, clock=HastyClock()) as client:
            sessions = Sessions(tokens, secure=False, clock=client.clock)
            api = Api(client, auth=TokenAuth(tokens, sessions), sessions=sessions)
            async with Listening(api, "127.0.0.1", 0, stopping=api.stop_waiting) as listening:
                ready.append(f"http://127.0.0.1:{listening.port}")
                up.set()
                await stop.wait()
            await api.close()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert up.wait(20), "it does not serve"
        yield ready[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
