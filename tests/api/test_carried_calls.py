"""Store calls that operations carry: each survives its way as JSON, and so does its reply."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
import pytest

from windlass.api.carried_call import PlainCall
from windlass.api.operations import CARRIED, OPERATIONS, Operation
from windlass.core import commands, queries
from windlass.core.commands import COMMANDS
from windlass.core.ids import JobId
from windlass.core.job import Note, Progress, Token
from windlass.core.looks import AuditEntry, Finding, ServerRecord
from windlass.core.moving import HeldKey, Moved, Unpacked
from windlass.core.queries import QUERIES
from windlass.core.queue_settings import StoredSettings
from windlass.core.requests import Changed, KvWrite, Renewed
from windlass.core.schedule import DueSchedules, Schedule
from windlass.core.stats import KindStats, MinuteCounts, QueueStats, TimingCount, Totals

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
SECOND: Final = timedelta(seconds=1)
JOB: Final = JobId("0190c5f0-3f2a-7c1b-9c2e-5d3a6f1b2c4d")
KEY: Final = HeldKey("queue||q|k", JOB, "time", NOW, b"\xff")
TIMING: Final = TimingCount(NOW, "q", "k", "ran", 3, 2)
SERVER: Final = ServerRecord("s#1", "s", "host", 1, "1", NOW, NOW, ("q",), ("k",), ("d",), 2, {"a": "b"})
STATS: Final = QueueStats("q", paused=True, pending=2, dead=5, oldest_waiting=NOW, totals=Totals(1, 2, 3, 4, 5, 6))
SCHEDULE: Final = Schedule(id="s", rule="every 60s", queue="q", codec="json", payload=b" 1", priority=1, max_attempts=1)


@dataclass
class Sample:
    """A call, a reply to it, and what the audit says of both."""

    call: Any
    reply: Any
    audit: tuple[object, ...] | None = None


SAMPLES: Final[dict[str, Sample]] = {
    "renew": Sample(commands.RenewClaims([(JOB, Token("t"))], SECOND), [Renewed(NOW, cancel_requested=True), None]),
    "note": Sample(
        commands.WriteNotes([Note(JOB, Token("t"), Progress(1, 2, "n"), [("info", "l")])]), [True, False, None]
    ),
    "reschedule": Sample(
        commands.RescheduleJobs([JOB, JOB], NOW),
        [Changed.DONE, Changed.WRONG_STATE],
        ("reschedule", [JOB], {"run_at": NOW.isoformat()}),
    ),
    "queues": Sample(queries.GetStats("q"), [STATS]),
    "pause": Sample(commands.SetQueueSettings("q", StoredSettings(paused=True)), None, ("pause", "q", {})),
    "resume": Sample(commands.SetQueueSettings("q", StoredSettings(paused=False)), None, ("resume", "q", {})),
    "paused": Sample(queries.GetQueueSettings(["q", "r"]), {"r": StoredSettings(paused=True)}),
    "due_in": Sample(queries.GetDueTime(["q"]), SECOND),
    "kinds": Sample(queries.ListKinds("q", ["k"]), ["l"]),
    "waiting": Sample(queries.CountWaiting(), [KindStats("q", "k", 1, NOW)]),
    "minutes": Sample(queries.GetMinutes(NOW, NOW + SECOND), [MinuteCounts(NOW, "q", "k", Totals(1, 2, 3, 4, 5, 6))]),
    "timings": Sample(queries.GetTimings(NOW, NOW + SECOND), [TIMING]),
    "write_timings": Sample(commands.WriteTimings([TIMING]), None),
    "servers": Sample(queries.ListServers(), [SERVER]),
    "ended_servers": Sample(queries.ListEndedServers(), ["s#1"]),
    "stranded": Sample(queries.CountStranded(SECOND), 7),
    "remove_schedule": Sample(commands.RemoveSchedule("s"), reply=True, audit=("remove schedule", "s", {})),
    "due_schedules": Sample(queries.ListDueSchedules(["s"], 10), DueSchedules(NOW, [SCHEDULE], NOW + SECOND)),
    "kv_get": Sample(queries.GetKv([b"k", b"\xff"]), [None, b"\xff"]),
    "kv_write": Sample(commands.WriteKv(KvWrite(b"\xff", None, b"v")), reply=True),
    "kv_scan": Sample(queries.ScanKv(b"\xff", b"\xffa", 1), [(b"\xffb", b"v")]),
    "lock": Sample(commands.TakeLock("l", "h", SECOND), reply=True),
    "unlock": Sample(commands.FreeLock("l", "h"), reply=False),
    "promote": Sample(commands.PromoteJobs(5), 3),
    "audit": Sample(queries.ListAudit(5), [AuditEntry(NOW, "alice", "pause", "q", {"a": "b"})]),
    "check": Sample(queries.CheckStore(), [Finding("n", "warning", "m", "a")]),
    "moved": Sample(queries.GetMoved(), Moved("postgres://db/jobs", "m")),
    "unpacked": Sample(queries.GetUnpacked("m", "q"), Unpacked(2, [JOB])),
    "let_go": Sample(commands.DeleteMoved("m", [JOB], [KEY.name], [b"\xff"], ["s"]), reply=True),
    "timed_keys": Sample(queries.ListTimedKeys(5), [KEY]),
    "take_keys": Sample(commands.TakeKeys([KEY]), None),
}
PLAIN: Final = {each.name: each for each in OPERATIONS if isinstance(each.carries, PlainCall)}


def _plain(operation: Operation[Any, Any]) -> PlainCall[Any, Any, Any, Any]:
    assert isinstance(operation.carries, PlainCall)
    return operation.carries


def test_each_plain_operation_has_a_sample() -> None:
    assert SAMPLES.keys() == PLAIN.keys()


@pytest.mark.parametrize("name", SAMPLES)
def test_the_serving_side_executes_the_call_that_was_sent(name: str) -> None:
    operation, sample = PLAIN[name], SAMPLES[name]
    carries = _plain(operation)

    sent = msgspec.json.decode(msgspec.json.encode(carries.request(sample.call)), type=operation.asks)

    # one entry more is asked for, which shows that there are older ones
    expected = queries.ListAudit(6) if name == "audit" else sample.call
    assert carries.read(sent) == expected


@pytest.mark.parametrize("name", SAMPLES)
def test_the_client_returns_the_reply_of_the_serving_side(name: str) -> None:
    operation, sample = PLAIN[name], SAMPLES[name]
    carries = _plain(operation)

    response = carries.response(sample.call, sample.reply)
    told = msgspec.json.decode(msgspec.json.encode(response), type=operation.tells)

    assert carries.reply(told) == sample.reply


@pytest.mark.parametrize("name", SAMPLES)
def test_the_audit_says_what_was_changed(name: str) -> None:
    carries, sample = _plain(PLAIN[name]), SAMPLES[name]

    assert (None if carries.audit is None else carries.audit(sample.call, sample.reply)) == sample.audit


def test_the_audit_says_nothing_of_a_schedule_that_was_not_there() -> None:
    audit = _plain(PLAIN["remove_schedule"]).audit

    removed = False

    assert audit is not None
    assert audit(commands.RemoveSchedule("s"), removed) is None


def test_most_calls_of_a_store_are_carried_by_one_operation() -> None:
    calls = {*COMMANDS, *QUERIES}
    more_than_one = {commands.SetQueueSettings}
    by_a_path_or_in_pages = {queries.GetPosition, queries.ListJobs, queries.ListNewestJobs, queries.ListDeadJobs}

    assert CARRIED.keys() == calls - more_than_one - by_a_path_or_in_pages
