import re
from datetime import UTC, datetime

import pytest

from windlass.core import errors
from windlass.core.errors import WindlassError

JOB = "01900000-0000-7000-8000-000000000000"
SINCE = datetime(2026, 1, 1, tzinfo=UTC)

# What Windlass itself words, and the part of it that says what to do. The others get their words where they are raised.
WORDED: dict[WindlassError, str] = {
    errors.InvalidName("queue", "a b", "has a blank"): "use 1 to 200 ASCII letters",
    errors.PayloadTooLarge("payload", 2_000_000, 1_048_576): "store the data elsewhere",
    errors.ValueTooLarge("kv value", 2, 1): "keep a reference",
    errors.MissingExtra("postgres", "postgres"): r"pip install 'windlass\[postgres\]'",
    errors.UnknownKind("send_email", ["send_mail"]): "did you mean 'send_mail'",
    errors.UnknownKind("send_email", []): "import its module",
    errors.TenantNotFound("acme"): "create it, or cancel its jobs",
    errors.ClientClosed(): r"windlass\.connect\(url\)",
    errors.ClaimLost(JOB): "stop working on it",
    errors.IdConflict(
        JOB, "email", None, "acme"
    ): "taken by a job other than one of queue 'email', no kind and tenant 'acme'",
    errors.UniqueConflict("k", JOB): "wait for that job, or use on_conflict='keep'",
    errors.JobNotFound(JOB): "the id is wrong, or it was deleted, or pruned after its retention",
    errors.WrongState(JOB, "running", "finished"): "needs one that is finished",
    errors.ResultNotKept(JOB): "set keep_succeeded",
    errors.LockLost("nightly"): "undo or stop what it guarded",
    errors.NotTransactional("memory://"): "leave connection= out",
    errors.OutcomeUnknown(JOB): "an enqueue with that id and a settlement with its token, and it is done once",
    errors.StoreOwned("host:1", SINCE): r"owned by host:1 since 2026-01-01 00:00:00 UTC: stop that process, or work",
    errors.StoreMoved("sqlite:///new.db"): "connect to sqlite:///new.db",
    errors.SchemaTooNew("jobs.db", 9, 1): "upgrade windlass",
}
FACTS = [
    (errors.ClaimLost(JOB), {"job_id": JOB}),
    (errors.IdConflict(JOB, "q", "k", None), {"job_id": JOB, "queue": "q", "kind": "k", "tenant": None}),
    (errors.UniqueConflict("k", JOB), {"key": "k", "job_id": JOB}),
    (errors.WrongState(JOB, "running", "dead"), {"job_id": JOB, "state": "running"}),
    (errors.PayloadTooLarge("payload", 2, 1), {"size": 2, "limit": 1}),
    (errors.ValueTooLarge("kv value", 2, 1), {"size": 2, "limit": 1}),
    (errors.DecodeError("no", "$.user"), {"path": "$.user"}),
    (errors.JobDead("the job", None), {"job": "the job"}),
    (errors.JobCancelled(JOB), {"job_id": JOB}),
    (errors.StoreUnavailable("busy", retryable=True), {"retryable": True}),
    (errors.StoreUnavailable("no"), {"retryable": False}),
    (errors.StoreOwned("host#1", SINCE), {"owner": "host#1", "since": SINCE, "retryable": True}),
    (errors.SchemaTooNew("jobs.db", 9, 1), {"found": 9, "known": 1, "retryable": False}),
]


def error_classes() -> list[type[WindlassError]]:
    return [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, WindlassError)]


def drawn_tree() -> set[tuple[str, str]]:
    """Pairs of an error and the one that it stands under, read from the drawing."""
    pairs: set[tuple[str, str]] = set()
    above = ["WindlassError"]
    for lead, names in re.findall(r"^([│ ]*)[├└]── (\w+(?:, \w+)*)", errors.__doc__ or "", re.MULTILINE):
        del above[len(lead) // 4 + 1 :]
        pairs |= {(str(name), above[-1]) for name in names.split(", ")}
        above.append(names)
    return pairs


def test_the_drawn_tree_is_the_tree_of_the_classes() -> None:
    real = {
        (each.__name__, next(base.__name__ for base in each.__bases__ if issubclass(base, WindlassError)))
        for each in error_classes()
        if each is not WindlassError
    }

    assert drawn_tree() == real


def test_the_drawing_names_the_built_in_error_that_each_also_is() -> None:
    text = errors.__doc__ or ""
    also = {
        (each.__name__, base.__name__)
        for each in error_classes()
        for base in each.__bases__
        if not issubclass(base, WindlassError) and base is not Exception
    }

    assert {(str(name), str(base)) for name, base in re.findall(r"(\w+) \(also (\w+)\)", text)} == also


@pytest.mark.parametrize("error", WORDED, ids=lambda error: type(error).__name__)
def test_a_message_says_what_to_do(error: WindlassError) -> None:
    assert re.search(WORDED[error], str(error))


@pytest.mark.parametrize("error, facts", FACTS, ids=lambda each: type(each).__name__)
def test_facts_are_attributes_so_nobody_parses_a_message(error: WindlassError, facts: dict[str, object]) -> None:
    assert {name: getattr(error, name) for name in facts} == facts


@pytest.mark.parametrize("each", error_classes())
def test_an_error_has_a_docstring_of_its_own(each: type[WindlassError]) -> None:
    assert each.__dict__.get("__doc__")


def test_a_dead_job_tells_its_reason_or_that_there_is_none() -> None:
    assert "boom" in str(errors.JobDead(None, "boom"))
    assert "no reason" in str(errors.JobDead(None, None))


def test_a_long_hostile_name_is_shortened_and_escaped() -> None:
    message = str(errors.InvalidName("queue", "\0" * 10_000, "has 10,000 characters"))

    assert "\0" not in message
    assert len(message) < 250
