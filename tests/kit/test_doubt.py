"""What a caller is told of a call that may have been done."""

from windlass.core.errors import OutcomeUnknown, StoreFull, StoreUnavailable
from windlass.kit.doubt import in_doubt

SILENT = StoreUnavailable("the store does not answer", retryable=True)


def test_a_doubt_about_a_job_names_it() -> None:
    told = in_doubt(SILENT, "a-job")

    assert isinstance(told, OutcomeUnknown)
    assert told.job_id == "a-job"
    assert told.__cause__ is SILENT


def test_another_doubt_is_said_in_words_and_once() -> None:
    told = in_doubt(SILENT, None)

    assert isinstance(told, StoreUnavailable)
    assert told.retryable
    assert str(told) == "the store does not answer; it may have been done all the same"
    assert in_doubt(told, None) is told
    assert str(SILENT) == "the store does not answer"


def test_what_a_server_has_said_stays_what_it_is() -> None:
    full = StoreFull("there is no room left")

    assert in_doubt(full, None) is full
