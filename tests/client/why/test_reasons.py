from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.job_samples import BARE
from windlass.client.why import Known, Reason, reasons
from windlass.core.ids import JobId
from windlass.core.job import Delivery, Failure, Job, Progress
from windlass.core.looks import AuditEntry, ServerRecord
from windlass.core.moving import Moved
from windlass.core.schedule import Schedule
from windlass.core.states import State
from windlass.core.stats import QueueStats
from windlass.core.verdict import LEASE_EXPIRED, ORPHANED

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ID = JobId("019ca96f-0000-7000-8000-000000000001")
OTHER = JobId("019ca96f-0000-7000-8000-000000000002")
SECOND = timedelta(seconds=1)
WAITING = BARE._replace(id=ID, queue="email", kind="send", payload=b"", codec="json", created_at=NOW, run_at=NOW)
SERVER = ServerRecord(
    id="web#1", name="web", host="box", pid=7, version="1", started_at=NOW, seen_at=NOW,
    queues=("email",), kinds=("send",), details={"slots": "2"},
)  # fmt: skip
STOPPING = replace(SERVER, details={"slots": "2", "stopping": "yes"})
NIGHTLY = Schedule(
    id="nightly", rule="@daily", queue="email", codec="json", priority=1000, max_attempts=5, declared=True,
    next_run_at=NOW + 60 * SECOND,
)  # fmt: skip


def known(job: Job | None = WAITING, *servers: ServerRecord, **more: Any) -> Known:  # noqa: ANN401 - any of its fields
    given: dict[str, Any] = {"ahead": 0, "queue": QueueStats("email", pending=1), "servers": servers, **more}
    return Known(now=NOW, id=ID, job=job, **given)


def ended(outcome: str, number: int = 1) -> Delivery:
    return Delivery(number, number, NOW - SECOND, NOW, "web#1", outcome)


def running(**more: Any) -> Job:  # noqa: ANN401 - any of its fields
    claim: dict[str, Any] = {"worker": "web#1", "claimed_at": NOW - 9 * SECOND, "attempt": 1, "delivery": 1}
    lease: dict[str, Any] = {"lease_expires_at": NOW + 30 * SECOND}
    return WAITING._replace(state=State.RUNNING, **{**claim, **lease, **more})


def dead(*outcomes: str, **more: Any) -> Job:  # noqa: ANN401 - any of its fields
    history = tuple(ended(outcome, number) for number, outcome in enumerate(outcomes, 1))
    return WAITING._replace(state=State.DEAD, finished_at=NOW, history=history, **{"attempt": len(outcomes), **more})


def names(told: list[Reason]) -> list[str]:
    return [reason.name for reason in told]


SILENT = replace(SERVER, seen_at=NOW - 300 * SECOND)
FULL = replace(SERVER, running=2)
LATER = WAITING._replace(state=State.SCHEDULED, run_at=NOW + 40 * SECOND)
TABLE: dict[str, tuple[Known, list[str]]] = {
    "ready": (known(WAITING, SERVER), ["ready"]),
    "paused": (known(WAITING, SERVER, queue=QueueStats("email", paused=True)), ["queue_paused"]),
    "no server": (known(), ["no_server"]),
    "a job that an operator retried": (
        known(WAITING._replace(delivery=1, history=(ended("failed")._replace(retried_at=NOW),)), SERVER),
        ["retried", "ready"],
    ),
    "a job that was retried before its first claim": (
        known(WAITING._replace(history=(ended("cancelled", 0)._replace(retried_at=NOW),)), SERVER),
        ["retried", "ready"],
    ),
    "a server that stops": (known(WAITING, STOPPING), ["no_server"]),
    "silent servers": (known(WAITING, SILENT), ["no_server"]),
    "a server that works nothing": (known(WAITING, replace(SERVER, queues=())), ["no_server"]),
    "queue of nobody": (known(WAITING, replace(SERVER, queues=("emial",))), ["queue_not_worked"]),
    "kind of nobody": (known(WAITING, replace(SERVER, kinds=("sned",))), ["kind_unknown"]),
    "raw without a consumer": (known(WAITING._replace(kind=None), SERVER), ["no_consumer"]),
    "raw with a consumer": (
        known(WAITING._replace(kind=None), replace(SERVER, details={"consumes": "other email"})), ["ready"],
    ),
    "all paused and gone": (
        known(queue=QueueStats("email", paused=True), ahead=3), ["queue_paused", "no_server", "behind"],
    ),
    "busy": (known(WAITING, FULL), ["all_busy"]),
    "busy and behind": (known(WAITING, FULL, ahead=7), ["all_busy", "behind"]),
    "one of two busy": (known(WAITING, FULL, replace(SERVER, id="two#2")), ["ready"]),
    "slots not told": (known(WAITING, replace(FULL, details={})), ["ready"]),
    "slots no number": (known(WAITING, replace(FULL, details={"slots": "\u0661"})), ["ready"]),
    "failed before": (known(WAITING._replace(attempt=1, last_error="E: x"), SERVER), ["failed_before", "ready"]),
    "runs alone": (
        known(WAITING._replace(attempt=4, last_error=LEASE_EXPIRED.summary), SERVER),
        ["failed_before", "runs_alone", "ready"],
    ),
    "more than one attempt left": (
        known(WAITING._replace(attempt=3, last_error=LEASE_EXPIRED.summary), SERVER), ["failed_before", "ready"],
    ),
    "to be stopped": (known(WAITING._replace(cancel_requested=True), SERVER), ["cancel_requested", "ready"]),
    "later": (known(LATER, SERVER, ahead=None), ["run_later"]),
    "later and paused": (known(LATER, SERVER, queue=QueueStats("email", paused=True)), ["run_later", "queue_paused"]),
    "snoozed": (known(LATER._replace(history=(ended("snoozed"),)), SERVER, ahead=None), ["snoozed"]),
    "retry": (known(LATER._replace(attempt=1, history=(ended("failed"),)), SERVER, ahead=None), ["retry_later"]),
    "due": (known(LATER._replace(run_at=NOW), SERVER, ahead=None), ["due", "ready"]),
    "moved": (known(WAITING, SERVER, moved=Moved("redis://there", "m")), ["store_moved", "ready"]),
    "running": (known(running(), SERVER), ["running"]),
    "by a silent server": (known(running(), SILENT), ["running", "holder_silent"]),
    "by a server that left": (known(running()), ["running", "holder_gone"]),
    "by a loop": (known(running(worker="box:7")), ["running"]),
    "lease over": (known(running(lease_expires_at=NOW), SERVER), ["lease_expired"]),
    "lease over for good": (known(running(lease_expires_at=NOW), SILENT), ["lease_expired"]),
    "past its timeout": (
        known(running(cancel_requested=True), replace(SERVER, details={"stuck": f"{OTHER}, {ID}"})),
        ["running", "past_timeout", "cancel_requested"],
    ),
    "done": (known(WAITING._replace(state=State.SUCCEEDED, finished_at=NOW, attempt=1)), ["succeeded"]),
    "spent": (known(dead("failed", "failed", max_attempts=2, last_error="E: x")), ["dead_out_of_attempts"]),
    "given up": (known(dead("failed", last_error="E: x")), ["dead_given_up"]),
    "poison": (known(dead("rescued", "rescued", max_attempts=2, last_error=LEASE_EXPIRED.summary)), ["dead_rescued"]),
    "orphan": (known(dead("rescued", last_error=ORPHANED.summary)), ["dead_orphaned"]),
    "strange kind": (known(dead("failed", last_error="UnknownKind: no handler")), ["dead_unknown_kind"]),
    "key of another": (known(dead("failed", unique_key="k"), key_holder=OTHER), ["dead_given_up", "key_held"]),
    "key of its own": (known(dead("failed", unique_key="k"), key_holder=ID), ["dead_given_up"]),
    "holds its key": (known(WAITING._replace(unique_key="k"), SERVER, key_holder=ID), ["ready", "holds_key"]),
    "cancelled": (known(WAITING._replace(state=State.CANCELLED, finished_at=NOW)), ["cancelled"]),
    "of a schedule": (
        known(WAITING._replace(schedule_id="nightly"), replace(SERVER, schedules=("nightly",)), schedule=NIGHTLY),
        ["ready", "schedule"],
    ),
    "of an orphan": (
        known(WAITING._replace(schedule_id="nightly"), SERVER, schedule=NIGHTLY), ["ready", "schedule_orphaned"],
    ),
    "of a paused one": (
        known(WAITING._replace(schedule_id="nightly"), SERVER, schedule=replace(NIGHTLY, paused=True)),
        ["ready", "schedule_paused"],
    ),
    "of one that is gone": (known(WAITING._replace(schedule_id="nightly"), SERVER), ["ready", "schedule_removed"]),
    "not here": (known(None), ["not_found"]),
    "not here, but nearly": (known(None, near=[OTHER], moved=Moved("x", "m")), ["near_id", "store_moved", "not_found"]),
}  # fmt: skip


@pytest.mark.parametrize("what", TABLE)
def test_each_situation_has_its_reasons(what: str) -> None:
    situation, expected = TABLE[what]

    assert names(reasons(situation)) == expected


@pytest.mark.parametrize(
    "situation,said",
    [
        (known(LATER._replace(attempt=2, last_error="E: x\nmore")), "2 of 5 failed (E: x): the next one begins in 40"),
        (known(WAITING, SERVER, ahead=1, ended_lately=300), "behind 1 job of its queue"),
        (known(WAITING, SERVER, ahead=90, ended_lately=300), "its turn comes in about 1 min 30 s"),
        (known(WAITING, SERVER, ahead=1000, ended_lately=300), "1,000 jobs or more of its queue"),
        (known(WAITING, SERVER, ahead=2), "not one has ended in the last 5 min"),
        (known(WAITING, replace(SERVER, queues=("emial",))), "(did you mean 'emial'?)"),
        (known(WAITING, replace(SERVER, kinds=("sned",))), "(did you mean 'sned'?)"),
        (known(ended_lately=12), "12 claims of its queue ended in the last 5 min"),
        (known(WAITING, SILENT), "web (host box, pid 7), was heard of 5 min ago"),
        (known(running(progress=Progress(3, 10)), SERVER), "has held it for 9 s"),
        (known(running(progress=Progress(1_234_567, 2_500_000)), SERVER), "; 1,234,567 of 2,500,000 done"),
        (known(running(lease_expires_at=NOW), SERVER), "web (host box, pid 7) takes it back"),
        (known(running(lease_expires_at=NOW, attempt=5), SERVER), "it is dead then"),
        (known(running(lease_expires_at=NOW)), "no live server is there"),
        (known(WAITING._replace(run_at=NOW - 90 * SECOND), SERVER), "it has been in line for 1 min 30 s"),
        (known(None), "its id was made"),
        (
            known(
                WAITING._replace(state=State.CANCELLED, finished_at=NOW),
                audit=[AuditEntry(NOW, "ann", "retry", ID, {}), AuditEntry(NOW, "ben", "cancel", ID, {})],
            ),
            "it was cancelled by ben at",
        ),
    ],
)  # fmt: skip
def test_a_reason_says_the_numbers_and_names(situation: Known, said: str) -> None:
    assert any(said in reason.message for reason in reasons(situation)), reasons(situation)


def test_a_server_that_only_works_takes_no_job_back() -> None:
    served = replace(SERVER, details={"served": "yes"})

    [reason] = reasons(known(running(lease_expires_at=NOW), served))

    assert reason.facts["rescuer"] is None
    assert reason.advice is not None


TIMES = st.none() | st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
TEXTS = st.none() | st.text(max_size=300) | st.sampled_from([LEASE_EXPIRED.summary, ORPHANED.summary, "", "\n"])
NAMES = st.sampled_from(["email", "send", "web#1", "\x1b[2J", "名"])
DELIVERIES = st.builds(
    Delivery, st.integers(1, 9), st.integers(1, 9), st.just(NOW), TIMES, st.none() | NAMES,
    st.sampled_from([None, "failed", "rescued", "snoozed", "released", "strange"]),
    st.none() | st.builds(Failure, st.text(max_size=300), st.none() | NAMES, module=st.none() | NAMES), TIMES,
)  # fmt: skip
JOBS = st.builds(
    WAITING._replace,
    state=st.sampled_from(State), queue=NAMES, kind=st.none() | NAMES, attempt=st.integers(0, 9),
    max_attempts=st.integers(1, 9), run_at=TIMES.filter(bool), claimed_at=TIMES, lease_expires_at=TIMES,
    finished_at=TIMES, worker=st.none() | NAMES, last_error=TEXTS, cancel_requested=st.booleans(),
    progress=st.none() | st.just(Progress(1, 0)), unique_key=st.none() | NAMES, schedule_id=st.none() | NAMES,
    history=st.lists(DELIVERIES, max_size=3).map(tuple),
)  # fmt: skip
SERVERS = st.builds(
    replace, st.just(SERVER), id=NAMES, seen_at=TIMES.filter(bool), queues=st.lists(NAMES).map(tuple),
    kinds=st.lists(NAMES).map(tuple), running=st.integers(0, 5),
    details=st.dictionaries(st.sampled_from(["slots", "consumes", "stuck", "served"]), st.text(max_size=9)),
)  # fmt: skip


@given(
    job=st.none() | JOBS,
    servers=st.lists(SERVERS, max_size=3),
    more=st.fixed_dictionaries(
        {
            "ahead": st.none() | st.integers(0, 1000),
            "key_holder": st.sampled_from([None, ID, OTHER]),
            "ended_lately": st.integers(0, 10**6),
            "schedule": st.sampled_from([None, NIGHTLY]),
            "moved": st.sampled_from([None, Moved("redis://there", "m")]),
        }
    ),
)
def test_whatever_is_known_there_is_a_reason(
    job: Job | None, servers: list[ServerRecord], more: dict[str, Any]
) -> None:
    told = reasons(known(job, *servers, **more))

    assert told
    assert all(reason.message and reason.advice != "" for reason in told)


def test_a_job_that_was_set_aside_and_retried_is_not_called_cancelled() -> None:
    job = WAITING._replace(history=(ended("failed", 0)._replace(retried_at=NOW),))

    [retried, _] = reasons(known(job, SERVER))

    assert retried.message.endswith("it had ended as failed before its first claim")


def test_the_advice_for_a_damaged_job_is_a_call_that_its_state_allows() -> None:
    damaged = WAITING._replace(damage="codec is empty")
    advice = {state: reasons(known(damaged._replace(state=state), SERVER))[0].advice or "" for state in State}

    retry = f"windlass jobs retry {ID}"
    assert {state for state, text in advice.items() if retry in text} == {State.DEAD, State.CANCELLED}
    assert "no worker" not in advice[State.SUCCEEDED]
