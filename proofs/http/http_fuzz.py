"""Calls that schemathesis makes up from the OpenAPI document, fitting and not: the API answers each as it says."""

import asyncio
import os
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
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
_STREAMS: Final = (NEWS.path, LOG.path.partition("{id}")[2])
"""How the paths of streams end, which a caller hangs up on after a moment."""
_STREAMED_FOR: Final = 0.05
FORMATS: Final = """
import re
import uuid

import schemathesis
from hypothesis import strategies as st


@schemathesis.hook
def before_call(context, case, kwargs):
    for name, value in (case.headers or {}).items():
        if name.lower() in ("windlass-request", "idempotency-key") and re.fullmatch("[!-~]{1,200}", str(value)):
            case.headers[name] = uuid.uuid4().hex


rules = ["@daily", "*/5 * * * *", "0 9 * * mon-fri", "0 0 12 L * *", "every 300s", "every 1.5s"]
schemathesis.openapi.format("windlass-rule", st.sampled_from(rules))
schemathesis.openapi.format("windlass-url", st.sampled_from(["sqlite:///new.db", "postgres://db/shop"]))
schemathesis.openapi.format("iana-timezone", st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]))
"""
"""What the formats of the document mean: no pattern says which texts are cron expressions. Each call has an id of its
own: a second call under the id of another is refused."""
CONFIG: Final = """
[[operations]]
include-operation-id = "unpack"
checks.positive_data_acceptance.enabled = false

[[operations]]
include-operation-id = "take_keys"
checks.positive_data_acceptance.enabled = false

[[operations]]
include-operation-id = "kv_scan"
checks.negative_data_rejection.enabled = false
"""
"""A parcel has jobs of its own queue and keys of its own jobs alone, and each key is sent once: no schema says that of
two values. A schema counts characters where the limit of a key is one of bytes, so it allows less than is taken."""
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


class _HungUp:
    """The API for callers who hang up on a stream after a moment."""

    def __init__(self, api: ASGIApp) -> None:
        self._api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_stream = scope["type"] == "http" and scope["path"].endswith(_STREAMS)

        async def hang_up() -> Message:
            await asyncio.sleep(_STREAMED_FOR)
            return {"type": "http.disconnect"}

        await self._api(scope, hang_up if is_stream and scope["method"] == "GET" else receive, send)


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
    """Return what schemathesis reports of its calls as `caller`; a store that was moved refuses all that follow."""
    others = _run(folder / caller, caller, plan, ("--exclude-operation-id", SET_MOVED.name))
    moved = _run(folder / f"{caller}-moved", caller, plan, ("--include-operation-id", SET_MOVED.name))
    for what in ("test_cases", "operations"):
        for each, count in moved[what].items():
            if isinstance(count, int):
                others[what][each] += count
    others["failures"] += moved["failures"]
    others["errors"] += moved["errors"]
    return others


def _run(place: Path, caller: str, plan: Plan, chosen: Sequence[str]) -> Any:  # noqa: ANN401 - the JSON edge
    place.mkdir(parents=True)
    (place / "openapi.json").write_bytes(written())
    (place / "formats.py").write_text(FORMATS)
    (place / "schemathesis.toml").write_text(CONFIG)
    role = CALLERS[caller]
    # it tries many wrong tokens from one address, and takes an advice to wait for a mistake
    patient = mock.patch.object(throttle, "FAILURES", sys.maxsize)
    with patient, _serving(f"sqlite:///{place}/jobs.db?synchronous=normal") as url:
        done = subprocess.run(
            [
                *(sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()", "run"),
                *("openapi.json", "--url", url, "--no-color", "--report", "json", "--report-json-path", "report.json"),
                *("--phases", ",".join(plan.phases), "--max-examples", str(_examples(plan)), "--seed", str(plan.seed)),
                # who is not known is told nothing of methods
                *(("--exclude-checks", "unsupported_method") if role is None else ()),
                *chosen,
                *("--continue-on-failure", "--request-timeout", "60"),
                *(() if role is None else ("--header", f"Authorization: Bearer {secret_of(role)}")),
            ],
            cwd=place,
            env={**os.environ, "SCHEMATHESIS_HOOKS": "formats", "PYTHONPATH": str(place)},
            capture_output=True,
            text=True,
            timeout=MOST_SECONDS,
            check=False,
        )
    # it has the calls that failed, to be sent again
    (place / "output.txt").write_text(done.stdout + done.stderr)
    report = place / "report.json"
    assert report.exists(), done.stdout + done.stderr
    return msgspec.json.decode(report.read_bytes())


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
            async with Listening(_HungUp(api), "127.0.0.1", 0, stopping=api.stop_waiting) as listening:
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
