"""What errors and refusals mean: whether a call is tried again, whether it is in doubt, and what is said."""

import socket
import ssl
from typing import Final

import pytest

from windlass.core.errors import (
    ClaimLost,
    ClientClosed,
    Fenced,
    OutcomeUnknown,
    StoreReadOnly,
    StoreUnavailable,
    WindlassError,
)
from windlass.stores.http.faults import Fault, Refused, kind, leaves_doubt, refusal, translate
from windlass.stores.http.options import Options
from windlass.stores.http.reply import NotHTTP, Reply, ReplyTooLarge

WHERE: Final = Options("h", 8080)
WITH_TOKEN: Final = Options("h", 8080, token="s3cret")  # noqa: S106 - one of a test
TOLD: Final = {
    b"busy": StoreUnavailable("the store is busy", retryable=True),
    b"read-only": StoreReadOnly("the disk takes no writes"),
    b"closing": ClientClosed(),
    b"fenced": Fenced("another process has the store"),
    b"lost": ClaimLost("1"),
    b"unknown": OutcomeUnknown("1"),
    b"role": StoreUnavailable("the token needs the role work"),
}


def judged(
    status: int, body: bytes = b"", *, ours: bool = True, options: Options = WHERE, location: str | None = None
) -> Refused:
    reply = Reply(status, "p" if ours else None, None, location, body)
    refused = refusal(reply, options, TOLD.get)
    assert refused is not None
    return refused


def test_what_was_asked_for_is_no_refusal() -> None:
    for status in (200, 201, 204):
        assert refusal(Reply(status, "p", None, None, b"{}"), WHERE, TOLD.get) is None


@pytest.mark.parametrize(
    "status, body, ours, fault, doubt",
    [
        (503, b"busy", True, Fault.TRANSIENT, False),
        (503, b"closing", True, Fault.TRANSIENT, False),
        (503, b"", True, Fault.TRANSIENT, False),
        (429, b"", True, Fault.TRANSIENT, False),
        (429, b"", False, Fault.TRANSIENT, False),
        (408, b"", False, Fault.TRANSIENT, False),
        (502, b"", False, Fault.UNHEARD, True),
        (503, b"", False, Fault.UNHEARD, True),
        (504, b"", False, Fault.UNHEARD, True),
        (503, b"read-only", True, Fault.FINAL, False),
        (503, b"fenced", True, Fault.UNHEARD, True),
        (409, b"lost", True, Fault.FINAL, False),
        (409, b"unknown", True, Fault.FINAL, True),
        (401, b"", True, Fault.FINAL, False),
        (403, b"role", True, Fault.FINAL, False),
        (500, b"", True, Fault.FINAL, True),
        (500, b"", False, Fault.FINAL, True),
        (302, b"", False, Fault.FINAL, False),
        (404, b"", False, Fault.FINAL, False),
        (200, b"<html>", False, Fault.FINAL, False),
    ],
)
def test_a_refusal_is_judged_by_who_says_it(status: int, body: bytes, *, ours: bool, fault: Fault, doubt: bool) -> None:
    refused = judged(status, body, ours=ours)

    assert (kind(refused), leaves_doubt(refused)) == (fault, doubt)


@pytest.mark.parametrize("body", [b"busy", b"read-only", b"lost", b"role"])
def test_what_the_serving_process_tells_is_what_users_are_told(body: bytes) -> None:
    status = 409 if body == b"lost" else 403 if body == b"role" else 503

    assert translate(judged(status, body), WHERE.where) is TOLD[body]


def test_what_somebody_else_says_is_not_taken_for_the_serving_process() -> None:
    assert translate(judged(409, b"lost", ours=False), WHERE.where) is not TOLD[b"lost"]


@pytest.mark.parametrize(
    "refused, said, retryable",
    [
        (judged(401), r"wants a token: give one by connect\(token=...\) or WINDLASS_TOKEN", False),
        (judged(401, options=WITH_TOKEN), "refused the token: it is wrong", False),
        (judged(403, ours=False), "needs a role", False),
        (judged(404, ours=False), "not windlass serve .status 404.: check host, port and path", False),
        (judged(200, ours=False), "not windlass serve", False),
        (judged(301, location="https://h/"), "redirection to 'https://h/', which is not followed", False),
        (judged(302), "redirection to 'elsewhere'", False),
        (judged(500), "its log says why", True),
        (judged(501, ours=False), "status 501", True),
        (judged(503), "is not ready, or has too much to do .it answered with status 503", True),
        (judged(503, b"closing"), "is not ready", True),
        (judged(503, b"fenced"), "has lost its store to another process, and ends: start `windlass serve`", True),
        (judged(502, ours=False), "a proxy before it answered with status 502", True),
        (judged(422), "another release", False),
    ],
)
def test_a_refusal_says_what_to_do(refused: Refused, said: str, *, retryable: bool) -> None:
    error = translate(refused, WHERE.where)

    with pytest.raises(StoreUnavailable, match=said):
        raise error
    assert isinstance(error, StoreUnavailable)
    assert error.retryable is retryable
    assert "http://h:8080" in str(error)
    assert "s3cret" not in str(error)


def test_a_redirection_shows_nothing_behind_a_question_mark() -> None:
    assert "s3cret" not in str(judged(302, location="https://login/?state=s3cret").error)


def _refused_twice() -> OSError:
    return OSError("Multiple exceptions: [Errno 111] Connect call failed ('::1', 1), [Errno 111] Connect call failed")


@pytest.mark.parametrize(
    "error, fault, said",
    [
        (ConnectionRefusedError(111, "Connect call failed"), Fault.LOST, "nothing listens .*start `windlass serve`"),
        (_refused_twice(), Fault.LOST, "nothing listens"),
        (ConnectionResetError("gone"), Fault.LOST, "does not answer: gone: .*https://"),
        (TimeoutError(), Fault.LOST, "does not answer: TimeoutError"),
        (socket.gaierror(-2, "Name or service not known"), Fault.LOST, "is not known here .*check its name"),
        (PermissionError(1, "Operation not permitted"), Fault.LOST, "does not answer"),
        (ssl.SSLEOFError(8, "EOF"), Fault.LOST, "does not answer"),
        (ssl.SSLCertVerificationError("self-signed"), Fault.FINAL, r"was not trusted: .*\?tls_ca="),
        (ssl.SSLError(1, "WRONG_VERSION_NUMBER"), Fault.FINAL, "speaks TLS, or is http://"),
        (NotHTTP("SSH"), Fault.FINAL, "is not windlass serve .*check host and port"),
        (ReplyTooLarge(5), Fault.FINAL, "ask for fewer at once"),
        (ValueError("a bug"), Fault.FINAL, "failed: a bug"),
    ],
)
def test_an_error_of_the_network_says_what_to_do(error: Exception, fault: Fault, said: str) -> None:
    made = translate(error, WHERE.where)

    assert kind(error) is fault
    assert leaves_doubt(error) is (fault is Fault.LOST or isinstance(error, ReplyTooLarge))
    with pytest.raises(StoreUnavailable, match=said) as told:
        raise made
    assert told.value.retryable is (fault is Fault.LOST)
    assert told.value.__cause__ is error


def test_an_error_of_ours_stays_as_it_is() -> None:
    errors: list[WindlassError] = [ClaimLost("1"), StoreUnavailable("x"), StoreUnavailable("y", retryable=True)]

    assert [translate(error, "there") for error in errors] == errors
    assert [kind(error) for error in errors] == [Fault.FINAL, Fault.FINAL, Fault.LOST]


@pytest.mark.parametrize(
    "text, seconds",
    [("7", 7.0), ("0.5", 0.5), (None, 0.0), ("Wed, 21 Oct 2026 07:28:00 GMT", 0.0), ("-1", 0.0), ("9" * 30, 0.0)],
)
def test_how_long_a_server_wants_to_be_left_alone_is_a_number_of_seconds(text: str | None, seconds: float) -> None:
    refused = refusal(Reply(503, "p", text, None, b""), WHERE, TOLD.get)

    assert refused is not None
    assert refused.retry_after == seconds


def test_who_works_through_a_process_that_was_fenced_is_not_fenced() -> None:
    """It waits for the next serving process, where the owner of the store would have to end."""
    assert not isinstance(translate(judged(503, b"fenced"), WHERE.where), Fenced)
