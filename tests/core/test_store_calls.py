"""Facts of the calls of a store, and the tables that execute them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from inspect import isclass
from types import ModuleType
from typing import Any, Final

import pytest

from windlass.core import commands, queries
from windlass.core.commands import COMMANDS, CancelJobs, ClaimJobs, EnqueueJobs, PromoteJobs, SettleClaims
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Note, Token
from windlass.core.looks import ServerRecord
from windlass.core.moving import Packed, Parcel
from windlass.core.queries import QUERIES
from windlass.core.queue_settings import StoredSettings
from windlass.core.requests import ClaimRequest, KvWrite, RescueRequest
from windlass.core.retention import KEEP_ALL
from windlass.core.schedule import Firing, Schedule
from windlass.core.store_calls import Command, Part, Query, RepeatSafety, StoreCall, check_tables, table_of

MINUTE: Final = timedelta(minutes=1)
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
ID: Final = JobId("01900000-0000-7000-8000-000000000000")
TOKEN: Final = Token("token")
SERVER: Final = ServerRecord("s", "s", "host", 1, "1", NOW, NOW)
SCHEDULE: Final = Schedule(id="s", rule="0 * * * *", queue="q", codec="raw", priority=1, max_attempts=3)
SAME, STORE, REPLY = RepeatSafety.SAME, RepeatSafety.STORE, RepeatSafety.REPLY

FACTS: Final = {
    "EnqueueJobs": (STORE, True),
    "ClaimJobs": (STORE, True),
    "SettleClaims": (STORE, False),
    "RenewClaims": (SAME, False),
    "WriteNotes": (REPLY, False),
    "CancelJobs": (REPLY, True),
    "RetryJobs": (REPLY, True),
    "DeleteJobs": (REPLY, False),
    "RescheduleJobs": (REPLY, True),
    "SetQueueSettings": (SAME, True),
    "RescueClaims": (REPLY, False),
    "PromoteJobs": (REPLY, False),
    "PruneRecords": (REPLY, False),
    "WriteSchedule": (REPLY, True),
    "RemoveSchedule": (REPLY, True),
    "FireSchedule": (REPLY, True),
    "WriteKv": (REPLY, True),
    "TakeLock": (SAME, False),
    "FreeLock": (REPLY, False),
    "WriteHeartbeat": (SAME, False),
    "RemoveServer": (SAME, False),
    "WriteTimings": (REPLY, False),
    "WriteAudit": (REPLY, False),
    "SetMoved": (SAME, False),
    "UnpackJobs": (STORE, True),
    "DeleteMoved": (REPLY, False),
    "TakeKeys": (SAME, True),
}
"""Whether each command may be repeated, and whether a store that was moved refuses it, as at commit 04839a3.

`SetQueueSettings` has the facts of `set_paused` there, which it takes the place of.
"""


def test_each_command_has_the_facts_that_it_always_had() -> None:
    every: tuple[type[Command[Any]], ...] = (EnqueueJobs, ClaimJobs, SettleClaims, *COMMANDS)

    assert {each.__name__: (each.repeat, each.begins_work) for each in every} == FACTS


STORE_ITSELF, QUEUE, QUEUES = Part.STORE, Part.QUEUE, Part.QUEUES
JOBS, CLAIMS, SCHEDULES, ALL = Part.JOBS, Part.CLAIMS, Part.SCHEDULES, Part.ALL

TOUCHED: Final[Sequence[tuple[StoreCall[Any], Part, object]]] = (
    (EnqueueJobs(()), QUEUES, ()),
    (ClaimJobs(ClaimRequest(("q",), 1, MINUTE)), QUEUES, ("q",)),
    (SettleClaims(()), CLAIMS, ()),
    (commands.RenewClaims(((ID, TOKEN),), MINUTE), CLAIMS, ((ID, TOKEN),)),
    (commands.WriteNotes((Note(ID, TOKEN),)), CLAIMS, (Note(ID, TOKEN),)),
    (CancelJobs((ID,), KEEP_ALL), JOBS, (ID,)),
    (commands.RetryJobs((ID,)), JOBS, (ID,)),
    (commands.DeleteJobs((ID,)), JOBS, (ID,)),
    (commands.RescheduleJobs((ID,), None), JOBS, (ID,)),
    (commands.SetQueueSettings("q", StoredSettings(paused=True)), QUEUE, "q"),
    (commands.RescueClaims(RescueRequest(("q",)), KEEP_ALL), QUEUES, ("q",)),
    (PromoteJobs(1), QUEUES, None),
    (commands.PruneRecords(KEEP_ALL, 1), ALL, None),
    (commands.WriteSchedule(SCHEDULE, None), SCHEDULES, "s"),
    (commands.RemoveSchedule("s"), SCHEDULES, "s"),
    (commands.FireSchedule(Firing("s", 1, (), None)), SCHEDULES, "s"),
    (commands.WriteKv(KvWrite(b"k", b"v")), STORE_ITSELF, None),
    (commands.TakeLock("l", "h", MINUTE), STORE_ITSELF, None),
    (commands.FreeLock("l", "h"), STORE_ITSELF, None),
    (commands.WriteHeartbeat(SERVER), STORE_ITSELF, None),
    (commands.RemoveServer("s"), STORE_ITSELF, None),
    (commands.WriteTimings(()), STORE_ITSELF, None),
    (commands.WriteAudit(()), STORE_ITSELF, None),
    (commands.SetMoved(None), ALL, None),
    (commands.UnpackJobs(Parcel("m", "q", 1, Packed((), ()))), QUEUE, "q"),
    (commands.DeleteMoved(), ALL, None),
    (commands.TakeKeys(()), ALL, None),
    (queries.GetJobs((ID,)), JOBS, (ID,)),
    (queries.GetGlances((ID,)), JOBS, (ID,)),
    (queries.ListJobs(JobFilter(queue="q"), None, 1), QUEUES, "q"),
    (queries.ListNewestJobs(JobFilter(queue="q"), None, 1, 1), QUEUES, "q"),
    (queries.ListDeadJobs(None, None, 1), QUEUES, None),
    (queries.GetPosition(ID), JOBS, ID),
    (queries.GetDueTime(("q",)), QUEUES, ("q",)),
    (queries.GetStats("q"), QUEUES, "q"),
    (queries.GetQueueSettings(("q",)), QUEUES, ("q",)),
    (queries.ListKinds("q"), QUEUE, "q"),
    (queries.CountWaiting(), QUEUES, None),
    (queries.GetMinutes(NOW, NOW), QUEUES, None),
    (queries.GetTimings(NOW, NOW), STORE_ITSELF, None),
    (queries.ListServers(), STORE_ITSELF, None),
    (queries.ListEndedServers(), STORE_ITSELF, None),
    (queries.ListSchedules(("s",)), SCHEDULES, ("s",)),
    (queries.ListDueSchedules((), 1), SCHEDULES, None),
    (queries.ListAudit(1), STORE_ITSELF, None),
    (queries.CountStranded(MINUTE), ALL, None),
    (queries.CheckStore(), ALL, None),
    (queries.GetKv(()), STORE_ITSELF, None),
    (queries.ScanKv(b"", None, 1), STORE_ITSELF, None),
    (queries.GetMoved(), STORE_ITSELF, None),
    (queries.PackJobs("q", 1), QUEUE, "q"),
    (queries.GetUnpacked("m", "q"), QUEUE, "q"),
    (queries.ListTimedKeys(1), ALL, None),
)
"""The part of a store that each call touches, and what it names there."""


def test_each_call_says_what_it_touches() -> None:
    assert [(call, call.touches.part, call.touches.names(call)) for call, _, _ in TOUCHED] == [*TOUCHED]
    assert {type(call) for call, _, _ in TOUCHED} == {EnqueueJobs, ClaimJobs, SettleClaims, *COMMANDS, *QUERIES}


@pytest.mark.parametrize(
    "module, kind, calls",
    [
        (commands, Command, {*COMMANDS, EnqueueJobs, ClaimJobs, SettleClaims}),
        (queries, Query, set(QUERIES)),
    ],
)
def test_every_call_is_listed(module: ModuleType, kind: type, calls: set[type]) -> None:
    found = {each for each in vars(module).values() if isclass(each) and issubclass(each, kind) and each is not kind}

    assert found == calls


def _count(store: list[int], command: PromoteJobs) -> int:
    store.append(command.limit)
    return command.limit


def test_a_table_leads_from_a_call_to_its_function() -> None:
    table, store = table_of(PromoteJobs.by(_count)), list[int]()

    assert table[PromoteJobs](store, PromoteJobs(7)) == 7
    assert store == [7]


def test_a_call_that_is_given_twice_is_refused() -> None:
    with pytest.raises(TypeError, match="PromoteJobs is given twice"):
        table_of(PromoteJobs.by(_count), PromoteJobs.by(_count))


@dataclass(frozen=True, slots=True)
class _Strange(Query[int]):
    """A query that no store knows."""


@pytest.mark.parametrize(
    "tables, fault",
    [
        ([[PromoteJobs]], r"missing=\['CancelJobs'\]"),
        ([[PromoteJobs, CancelJobs], [CancelJobs]], r"twice=\['CancelJobs'\]"),
        ([[PromoteJobs, CancelJobs, _Strange]], r"strange=\['_Strange'\]"),
    ],
)
def test_tables_have_each_call_once(tables: list[list[type[StoreCall[object]]]], fault: str) -> None:
    with pytest.raises(TypeError, match=fault):
        check_tables([PromoteJobs, CancelJobs], *tables)


def test_calls_are_equal_by_what_they_ask_for() -> None:
    assert PromoteJobs(1) == PromoteJobs(1) != PromoteJobs(2)
