"""Errors go over HTTP and are the same on the other side."""

from datetime import UTC, datetime

import pytest

from windlass.api.problems import Problem, error_of, problem_of, status_of
from windlass.core import errors

TOLD = [
    errors.InvalidName("queue", "a b", "has a space"),
    errors.PayloadTooLarge("payload", 10, 5),
    errors.ClaimLost("an id"),
    errors.IdConflict("an id", "email", None, None),
    errors.UniqueConflict("key", "an id", "payload"),
    errors.JobNotFound("an id"),
    errors.WrongState("an id", "running", "dead"),
    errors.NotAtomicHere("a batch"),
    errors.OutcomeUnknown("an id"),
    errors.NotAllowed("no token"),
    errors.StoreUnavailable("gone", retryable=True),
    errors.StoreFull("full", retryable=True),
    errors.SchemaTooNew("the store", 9, 8),
    errors.StoreMoved("postgres://db/jobs"),
]


@pytest.mark.parametrize("error", TOLD, ids=lambda error: type(error).__name__)
def test_an_error_is_the_same_on_the_other_side(error: errors.WindlassError) -> None:
    made = error_of(problem_of(error))

    assert type(made) is type(error)
    assert str(made) == str(error)
    facts = {name: fact for name, fact in vars(error).items() if fact is None or isinstance(fact, str | int | bool)}
    assert {name: getattr(made, name) for name in facts} == facts


def test_what_cannot_be_sent_is_left_out() -> None:
    told = problem_of(errors.StoreOwned("somebody", datetime(2026, 1, 1, tzinfo=UTC)))

    assert told.facts == {"owner": "somebody", "retryable": True}


def test_an_error_of_a_newer_release_is_one_of_the_store() -> None:
    made = error_of(Problem(error="not_invented_yet", message="something new"))

    assert type(made) is errors.StoreUnavailable
    assert str(made) == "something new (not_invented_yet)"
    assert not made.retryable


def test_a_store_that_tells_no_more_than_its_name_is_not_tried_again() -> None:
    made = error_of(Problem(error="store_full", message="full"))

    assert isinstance(made, errors.StoreFull)
    assert not made.retryable


@pytest.mark.parametrize(
    "error, status",
    [
        (errors.InvalidValue("no"), 422),
        (errors.ValueTooLarge("value", 2, 1), 422),
        (errors.JobNotFound("an id"), 404),
        (errors.ClaimLost("an id"), 409),
        (errors.IdConflict("an id", "email", None, None), 409),
        (errors.NotAllowed("no"), 403),
        (errors.StoreFull("full"), 503),
        (errors.StoreMoved("postgres://db/jobs"), 410),
        (errors.ClientClosed(), 503),
    ],
)
def test_an_error_has_the_status_of_the_first_that_it_is(error: errors.WindlassError, status: int) -> None:
    assert status_of(error) == status
