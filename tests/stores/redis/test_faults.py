"""What each error of a server or of the system means for a call, and what people are told."""

import errno
import socket
import ssl
from typing import Final

import hiredis
import pytest

from windlass import (
    ClientClosed,
    StoreCorrupt,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    UniqueConflict,
)
from windlass.core.errors import WindlassError
from windlass.stores.redis.faults import Fault, NotReplicated, kind, translate
from windlass.stores.redis.line import Refused

WHERE: Final = "the server at db.example:6379"
# what a server says: what it means, what the caller is told, whether trying again can help, words that must be said
SAID: Final = [
    ("LOADING Redis is loading the dataset in memory", Fault.TRANSIENT, StoreUnavailable, True, "loading the dataset"),
    ("BUSY Redis is busy running a script.", Fault.TRANSIENT, StoreUnavailable, True, "busy running a script"),
    ("TRYAGAIN Multiple keys request", Fault.TRANSIENT, StoreUnavailable, True, "Multiple keys request"),
    ("ASK 3999 127.0.0.1:6381", Fault.TRANSIENT, StoreUnavailable, True, "is moving the slot of these keys"),
    ("NOSCRIPT No matching script.", Fault.TRANSIENT, StoreUnavailable, True, "No matching script"),
    ("NOREPLICAS Not enough good replicas", Fault.TRANSIENT, StoreUnavailable, True, "Not enough good replicas"),
    ("MOVED 3999 127.0.0.1:6381", Fault.ELSEWHERE, StoreUnavailable, True, "from one to another (MOVED 3999 127"),
    ("CLUSTERDOWN The cluster is down", Fault.ELSEWHERE, StoreUnavailable, True, "look whether all of its masters"),
    ("MASTERDOWN Link with MASTER is down", Fault.ELSEWHERE, StoreUnavailable, True, "Link with MASTER is down"),
    ("READONLY You can't write against a replica.", Fault.ELSEWHERE, StoreReadOnly, True, "name the master in the URL"),
    ("UNBLOCKED force unblock from blocking", Fault.ELSEWHERE, StoreUnavailable, True, "force unblock"),
    ("ERR WAIT cannot be used with replica instances.", Fault.ELSEWHERE, StoreUnavailable, True, "WAIT cannot be used"),
    (
        "ERR max number of clients reached",
        Fault.LOST,
        StoreUnavailable,
        True,
        "has too many clients: raise its maxclients",
    ),
    ("OOM command not allowed", Fault.FINAL, StoreFull, True, "raise its maxmemory"),
    ("MISCONF Errors writing to the AOF file", Fault.FINAL, StoreReadOnly, True, "cannot save them: MISCONF"),
    ("NOAUTH Authentication required.", Fault.FINAL, StoreUnavailable, False, "check those in the URL"),
    ("WRONGPASS invalid username-password pair", Fault.FINAL, StoreUnavailable, False, "check those in the URL"),
    ("NOPERM User x has no permissions", Fault.FINAL, StoreUnavailable, False, "refused the user"),
    (
        "ERR ACL failure in script: User x has no permissions to run the 'hincrby' command script: on @user_script:1.",
        Fault.FINAL,
        StoreUnavailable,
        False,
        "refused the user",
    ),
    (
        "ERR The user executing the script can't run this command or subcommand script: 0f, on @user_script:1.",
        Fault.FINAL,
        StoreUnavailable,
        False,
        "refused the user",
    ),
    ("ERR unknown command 'EVALSHA'", Fault.FINAL, StoreUnavailable, False, "unknown command"),
    ("CROSSSLOT Keys in request don't hash", Fault.FINAL, StoreUnavailable, False, "refused the call"),
    ("WRONGTYPE Operation against a key", Fault.FINAL, StoreCorrupt, False, "not of its type: WRONGTYPE"),
    ("ERR value is not an integer or out of range", Fault.FINAL, StoreCorrupt, False, "not of its type: value is"),
]


@pytest.mark.parametrize("said, meaning, told, retryable, words", SAID)
def test_every_error_of_a_server_has_its_meaning_and_its_advice(
    said: str, meaning: Fault, told: type[StoreUnavailable], retryable: object, words: str
) -> None:
    error = Refused(said)

    fault = translate(error, WHERE)

    assert kind(error) is meaning
    assert type(fault) is told
    assert isinstance(fault, StoreUnavailable)
    assert fault.retryable is retryable
    assert words in str(fault)
    assert WHERE in str(fault)
    assert fault.__cause__ is error


def test_what_is_repeated_is_said_to_be_worth_another_try() -> None:
    for said, meaning, _, retryable, _ in SAID:
        assert retryable or meaning is Fault.FINAL, said


@pytest.mark.parametrize(
    "error, meaning, retryable, word",
    [
        (TimeoutError(), Fault.LOST, True, "does not answer: TimeoutError"),
        (ConnectionResetError(errno.ECONNRESET, "reset by peer"), Fault.LOST, True, "reset by peer"),
        (socket.gaierror(socket.EAI_NONAME, "not known"), Fault.LOST, True, "not known"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed"), Fault.LOST, True, "nothing listens where"),
        (EOFError(), Fault.LOST, True, "does not answer"),
        (ConnectionError("the server has closed the connection"), Fault.LOST, True, "closed the connection"),
        (NotReplicated(1, 2), Fault.LOST, True, "only 1 of 2 replicas have the write: connect more, or lower ?wait="),
        (ssl.SSLCertVerificationError(1, "self-signed"), Fault.FINAL, False, "?tls_ca="),
        (ssl.SSLError(1, "wrong version number"), Fault.FINAL, False, "check whether it speaks TLS"),
        (ssl.SSLEOFError(8, "EOF occurred"), Fault.LOST, True, "does not answer"),
        (hiredis.ProtocolError("Protocol Error: b'<html>'"), Fault.FINAL, False, "Protocol Error"),
        (KeyError("a bug"), Fault.FINAL, False, "a bug"),
    ],
)
def test_every_error_of_the_driver_has_its_meaning_and_its_advice(
    error: Exception, meaning: Fault, retryable: object, word: str
) -> None:
    fault = translate(error, WHERE)

    assert kind(error) is meaning
    assert isinstance(fault, StoreUnavailable)
    assert (fault.retryable, fault.__cause__) == (retryable, error)
    assert word in str(fault)


@pytest.mark.parametrize(
    "error, meaning",
    [
        (UniqueConflict("key", None), Fault.FINAL),
        (ClientClosed(), Fault.FINAL),
        (StoreUnavailable("no such password"), Fault.FINAL),
        # a connection could not be had: the next one may
        (StoreUnavailable("did not answer in time", retryable=True), Fault.LOST),
    ],
)
def test_an_error_of_ours_stays_what_it_is(error: WindlassError, meaning: Fault) -> None:
    assert translate(error, WHERE) is error
    assert kind(error) is meaning
