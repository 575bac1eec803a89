"""What each error of Postgres means for a call, code by code, and what people are told."""

import asyncio
import errno
import socket
import ssl

import asyncpg
import psycopg
import pytest

from tests.stores.postgres.shell import blocking, options_of, use_statements
from windlass import (
    SchemaMissing,
    StoreCorrupt,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    UniqueConflict,
)
from windlass.stores.postgres.connections import Connections
from windlass.stores.postgres.faults import Fault, is_already_done, kind, translate
from windlass.stores.postgres.session import Session, open_session
from windlass.stores.postgres.work import Parameters

WHERE = "database app at db.example:5432"


def server_error(code: str, message: str = "what the server says", **fields: str) -> asyncpg.PostgresError:
    letters = {"constraint": "n", "function": "R", "detail": "D"}
    error: asyncpg.PostgresError = asyncpg.PostgresError.new(
        {"C": code, "M": message} | {letters[name]: value for name, value in fields.items()}
    )
    return error


# code: what it means, what the caller is told, whether trying again can help, a word that must be said
CODES = [
    ("08000", Fault.LOST, StoreUnavailable, True, "lost"),
    ("08001", Fault.LOST, StoreUnavailable, True, "lost"),
    ("08003", Fault.LOST, StoreUnavailable, True, "lost"),
    ("08006", Fault.LOST, StoreUnavailable, True, "lost"),
    ("08P01", Fault.LOST, StoreUnavailable, True, "lost"),
    ("40003", Fault.LOST, StoreUnavailable, True, "lost"),
    ("57P01", Fault.LOST, StoreUnavailable, True, "lost"),
    ("57P02", Fault.LOST, StoreUnavailable, True, "lost"),
    ("57P03", Fault.LOST, StoreUnavailable, True, "starting up"),
    ("57P05", Fault.LOST, StoreUnavailable, True, "lost"),
    ("25P03", Fault.LOST, StoreUnavailable, True, "lost"),
    ("53300", Fault.LOST, StoreUnavailable, True, "?connections="),
    ("40001", Fault.TRANSIENT, StoreUnavailable, True, "other transactions"),
    ("40P01", Fault.TRANSIENT, StoreUnavailable, True, "other transactions"),
    ("25006", Fault.STALE, StoreReadOnly, True, "standby"),
    ("26000", Fault.STALE, StoreUnavailable, True, "lost"),
    ("42P05", Fault.STALE, StoreUnavailable, True, "lost"),
    ("55P03", Fault.FINAL, StoreUnavailable, True, "holds a row or a key"),
    ("57014", Fault.FINAL, StoreUnavailable, True, "holds a row or a key"),
    ("25P04", Fault.FINAL, StoreUnavailable, True, "holds a row or a key"),
    ("53100", Fault.FINAL, StoreFull, True, "make room"),
    ("53200", Fault.FINAL, StoreUnavailable, True, "out of means"),
    ("58030", Fault.FINAL, StoreUnavailable, True, "out of means"),
    ("XX001", Fault.FINAL, StoreCorrupt, False, "backup"),
    ("XX002", Fault.FINAL, StoreCorrupt, False, "backup"),
    ("28000", Fault.FINAL, StoreUnavailable, False, "password"),
    ("28P01", Fault.FINAL, StoreUnavailable, False, "password"),
    ("3D000", Fault.FINAL, StoreUnavailable, False, "create the database"),
    ("3F000", Fault.FINAL, SchemaMissing, False, "windlass migrate"),
    ("42501", Fault.FINAL, StoreUnavailable, False, "grant"),
    ("0A000", Fault.FINAL, StoreUnavailable, False, "0A000"),
    ("23505", Fault.FINAL, StoreUnavailable, False, "23505"),
    ("42601", Fault.FINAL, StoreUnavailable, False, "42601"),
    ("XX000", Fault.FINAL, StoreUnavailable, False, "XX000"),
    ("ZZ999", Fault.FINAL, StoreUnavailable, False, "ZZ999"),
]


@pytest.mark.parametrize("code, meaning, told, retryable, word", CODES)
def test_every_code_has_its_meaning_and_its_advice(
    code: str, meaning: Fault, told: type[StoreUnavailable], retryable: object, word: str
) -> None:
    error = server_error(code)

    fault = translate(error, WHERE)

    assert kind(error) is meaning
    assert type(fault) is told
    assert isinstance(fault, StoreUnavailable)
    assert fault.retryable is retryable
    assert word in str(fault)
    assert WHERE in str(fault)
    assert fault.__cause__ is error


def test_what_can_be_repeated_is_said_to_be_worth_another_try() -> None:
    for code, meaning, _, retryable, _ in CODES:
        assert retryable or meaning is Fault.FINAL, code


@pytest.mark.parametrize("code", ["42P01", "42703", "42883"])
def test_a_table_of_ours_that_is_not_there_is_a_missing_schema(code: str) -> None:
    ours = translate(server_error(code, 'relation "windlass_job" does not exist'), WHERE)
    other = translate(server_error(code, 'relation "users" does not exist'), WHERE)

    assert isinstance(ours, SchemaMissing)
    assert all(word in str(ours) for word in ("windlass migrate", "?schema=", "search_path"))
    assert type(other) is StoreUnavailable


def test_a_plan_that_a_migration_outdated_asks_for_a_new_connection() -> None:
    # the message comes in the server's language, the function's name does not
    assert kind(server_error("0A000", "zwischengespeicherter Plan", function="RevalidateCachedQuery")) is Fault.STALE
    assert kind(server_error("0A000", "cached plan must not change result type")) is Fault.STALE


@pytest.mark.parametrize(
    "error, meaning, retryable, word",
    [
        (TimeoutError(), Fault.LOST, True, "did not answer in time"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), Fault.LOST, True, "nothing listens"),
        (
            OSError("Multiple exceptions: [Errno 111] at ::1, [Errno 111] at 127.0.0.1"),
            Fault.LOST,
            True,
            "nothing listens",
        ),
        (ConnectionResetError(errno.ECONNRESET, "reset"), Fault.LOST, True, "lost"),
        (OSError(errno.EHOSTUNREACH, "no route"), Fault.LOST, True, "lost"),
        (socket.gaierror(socket.EAI_NONAME, "not known"), Fault.LOST, True, "host"),
        (FileNotFoundError(errno.ENOENT, "no socket"), Fault.LOST, True, "socket"),
        (PermissionError(errno.EACCES, "not allowed"), Fault.LOST, False, "may not reach"),
        (ssl.SSLCertVerificationError(1, "self-signed"), Fault.FINAL, False, "sslrootcert"),
        (ssl.SSLError(1, "no protocols available"), Fault.LOST, True, "ssl_min_protocol_version"),
        (ConnectionError('PostgreSQL server at "db:1" rejected SSL upgrade'), Fault.FINAL, False, "TLS"),
        (asyncpg.InterfaceError("connection is closed"), Fault.LOST, True, "lost"),
        (asyncpg.InternalClientError("unexpected"), Fault.LOST, True, "lost"),
        (asyncpg.OutdatedSchemaCacheError("decoding"), Fault.LOST, True, "lost"),
        (asyncpg.TargetServerAttributeNotMatched("none"), Fault.LOST, True, "standby"),
        (asyncpg.ClientConfigurationError("bad sslmode"), Fault.FINAL, False, "bad sslmode"),
        (asyncpg.DataError("invalid input"), Fault.FINAL, False, "invalid input"),
        (psycopg.OperationalError("the connection is lost"), Fault.LOST, True, "lost"),
        (KeyError("a bug"), Fault.FINAL, False, "a bug"),
    ],
)
def test_every_error_of_a_driver_has_its_meaning_and_its_advice(
    error: Exception, meaning: Fault, retryable: object, word: str
) -> None:
    fault = translate(error, WHERE)

    assert kind(error) is meaning
    assert isinstance(fault, StoreUnavailable)
    assert (fault.retryable, fault.__cause__) == (retryable, error)
    assert word in str(fault)


def test_an_error_of_ours_stays_what_it_is() -> None:
    error = UniqueConflict("key", None)

    assert translate(error, WHERE) is error
    assert kind(error) is Fault.FINAL


def test_only_the_key_of_the_receipts_says_that_a_call_was_done() -> None:
    assert is_already_done(server_error("23505", constraint="windlass_receipt_pkey"))
    assert not is_already_done(server_error("23505", constraint="windlass_hold_pkey"))
    assert not is_already_done(server_error("23503", constraint="windlass_receipt_pkey"))


def test_a_value_of_somebodys_row_is_not_shown() -> None:
    fault = translate(server_error("23505", detail="Key (name)=(secret) already exists."), WHERE)

    assert "secret" not in str(fault)


async def test_a_password_is_never_shown(schema: str) -> None:
    url = schema.replace("postgres@", "nobody:pass-word@")
    options = options_of(url.replace("/of_", "/no_such_"))

    with pytest.raises(StoreUnavailable) as told:
        async with Connections(options).session(asyncio.get_running_loop().time() + 10):
            pass

    assert "create the database" in str(told.value) or "password" in str(told.value)
    assert "pass-word" not in f"{told.value} {options} {told.value.__cause__!r}"


async def test_real_errors_are_read_as_they_are_meant(schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_statements(monkeypatch)
    session = await open_session(options_of(schema, timeout=0.5), timeout=10)
    await session.fetch("create")
    await session.fetch("insert", {"number": 1})

    missing = await met(session, "missing", {})
    slow = await met(session, "sleep", {"seconds": 5.0})
    with blocking(schema) as other:
        other.execute("select * from number for update")
        held = await met(session, "lock_row", {"number": 1})
    await session.begin(look=True)
    read_only = await met(session, "insert", {"number": 2})
    await session.close()

    assert isinstance(translate(missing, WHERE), SchemaMissing)
    assert "gave up waiting" in str(translate(slow, WHERE))
    assert "gave up waiting" in str(translate(held, WHERE))
    assert isinstance(translate(read_only, WHERE), StoreReadOnly)


async def met(session: Session, name: str, parameters: Parameters) -> Exception:
    with pytest.raises(asyncpg.PostgresError) as error:
        await session.fetch(name, parameters)
    return error.value
