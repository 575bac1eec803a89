import decimal
from typing import cast

import pytest

from windlass.client.failure import failure_of
from windlass.core.errors import InvalidValue
from windlass.core.job import Failure
from windlass.core.names import MAX_ERROR, MAX_TRACEBACK


class Mute(Exception):
    """Cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


def raised(error: BaseException, depth: int = 0) -> BaseException:
    secret = "in a local variable"  # noqa: S105 - a test that it does not show
    try:
        if depth:
            raised(error, depth - 1)
        raise error
    except type(error) as caught:
        assert secret
        return caught


def test_a_reason_in_words_is_kept_as_it_is() -> None:
    assert failure_of("no such address") == Failure("no such address")


def test_an_exception_keeps_type_message_and_traceback_without_local_values() -> None:
    failure = failure_of(raised(ValueError("bad")))

    assert (failure.message, failure.type, failure.summary) == ("bad", "ValueError", "ValueError: bad")
    assert failure.traceback is not None
    assert failure.traceback.endswith("ValueError: bad\n")
    assert "in a local variable" not in failure.traceback.replace('secret = "in a local variable"', "")


def test_an_exception_that_cannot_describe_itself_is_still_a_failure() -> None:
    failure = failure_of(raised(Mute()))

    assert failure.type == "Mute"
    assert "RuntimeError" in failure.message


def test_long_texts_are_cut_and_a_traceback_keeps_its_end() -> None:
    failure = failure_of(raised(ValueError("x" * 100_000 + "end")))

    assert len(failure.message) <= MAX_ERROR
    assert failure.traceback is not None
    assert len(failure.traceback) == MAX_TRACEBACK
    assert failure.traceback.endswith("end\n")


def test_text_that_no_store_can_write_is_escaped() -> None:
    assert failure_of("half \ud800, zero \0").message == "half \\ud800, zero \\0"


def test_an_exception_that_was_never_raised_has_no_traceback() -> None:
    assert failure_of(KeyboardInterrupt()).traceback is None


def test_anything_else_is_refused() -> None:
    with pytest.raises(InvalidValue):
        failure_of(None)


class Unplaced(Exception):
    """Says where it is defined by a number."""


Unplaced.__module__ = cast("str", 7)


@pytest.mark.parametrize(
    "error, module",
    [(KeyError("x"), "builtins"), (decimal.InvalidOperation(), "decimal"), (Unplaced(), "(its text cannot be shown: ")],
)
def test_the_module_of_an_exception_is_kept(error: Exception, module: str) -> None:
    assert (failure_of(error).module or "").startswith(module)


@pytest.mark.parametrize(
    "failure, text",
    [
        (Failure("no"), "no"),
        (Failure("no", "Refused"), "Refused: no"),
        (Failure("no", "Refused", None, "shop.orders"), "shop.orders.Refused: no"),
        (Failure("no", "KeyError", None, "builtins"), "KeyError: no"),
        (Failure("no", "Refused", None, "__main__"), "Refused: no"),
    ],
)
def test_a_failure_in_full_has_the_import_path_of_its_type(failure: Failure, text: str) -> None:
    assert failure.full_summary == text
