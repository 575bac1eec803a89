"""Whoever opens connections and says nothing, or never ends what it says, makes room for those who speak."""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

import pytest

import windlass
from tests.http.given_app import secret_of, until
from tests.http.given_tokens import TokenList, a_token
from tests.servers.certificates import OPENSSL, make_certificate, make_root
from windlass.api.roles import Role
from windlass.config.settings import EventLoop
from windlass.event_loop import runner_on
from windlass.http import connection, crowd, tls_handshake
from windlass.http.app import Api
from windlass.http.auth import TokenAuth
from windlass.http.crowd import Crowd
from windlass.http.dashboard.app import Dashboard
from windlass.http.health import LIVE, READY
from windlass.http.listening import Listening
from windlass.testing.conformance.fixtures import soon

HOST = "127.0.0.1"
ADDRESSES = ("127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.6")
HALF = b"GET /api/v1/jobs HTTP/1.1\r\nhost: local"
SLOW_BODY = (
    b"POST /api/v1/session HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    b"content-length: 1000\r\n\r\n{"
)
REFUSED_BODY = SLOW_BODY.replace(b"/session", b"/claims")


class Served:
    """An API or a dashboard, behind a port of its own."""

    def __init__(self, listening: Listening) -> None:
        self.listening = listening

    async def asks(self, path: str, *, token: str | None = None, address: str = HOST, tls: bool = False) -> int:
        """Return the status of a request by a connection of its own."""
        reader, writer = await asyncio.open_connection(
            HOST, self.listening.port, local_addr=(address, 0), ssl=_trusting() if tls else None
        )
        try:
            writer.write(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n".encode())
            if token is not None:
                writer.write(f"authorization: Bearer {token}\r\n".encode())
            writer.write(b"connection: close\r\n\r\n")
            return int((await reader.readuntil(b"\r\n")).split()[1])
        finally:
            writer.close()
            with suppress(OSError):
                await soon(writer.wait_closed())


@asynccontextmanager
async def served(
    kind: str = "api", *, most: int = 1_000, per_address: int = 250, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[Served]:
    tokens = TokenList(a_token(secret_of(Role.ADMIN), name="ada", roles=[Role.ADMIN]))
    async with windlass.connect("memory://") as client:
        app = Api(client, auth=TokenAuth(tokens)) if kind == "api" else Dashboard(client, auth=TokenAuth(tokens))
        listening = Listening(
            app,
            HOST,
            0,
            tls=tls,
            connections=most,
            connections_per_address=per_address,
            probes=(LIVE, READY),
            stopping=app.stop_waiting,
        )
        async with listening:
            yield Served(listening)
        await app.close()


@contextmanager
def opened(port: int, count: int, addresses: tuple[str, ...] = (HOST,)) -> Generator[list[socket.socket]]:
    """Open connections that say nothing."""
    with ExitStack() as stack:
        made: list[socket.socket] = []
        for number in range(count):
            each = stack.enter_context(socket.socket())
            each.bind((addresses[number % len(addresses)], 0))
            each.setblocking(False)  # noqa: FBT003 - as a socket's
            each.connect_ex((HOST, port))
            made.append(each)
        yield made


async def said_by(made: list[socket.socket], said: bytes) -> None:
    """Say this on every connection that is open by now."""
    loop = asyncio.get_running_loop()
    for each in made:
        try:
            await asyncio.wait_for(loop.sock_sendall(each, said), 5)
        except OSError:
            continue


async def _all_are_answered(given: Served, path: str, *, tls: bool = False, address: str = HOST) -> None:
    token = secret_of(Role.ADMIN)
    for _ in range(3):
        assert await soon(given.asks(path, token=token, tls=tls, address=address)) == 200
        assert await soon(given.asks(LIVE, tls=tls, address=address)) == 200
        assert await soon(given.asks(READY, tls=tls, address=address)) == 200


@pytest.mark.parametrize("kind, path", [("api", "/api/v1/jobs"), ("dashboard", "/jobs")])
@pytest.mark.parametrize("addresses", [(HOST,), ADDRESSES], ids=["one", "several"])
async def test_connections_that_say_nothing_shut_nobody_out(kind: str, path: str, addresses: tuple[str, ...]) -> None:
    async with served(kind) as given:
        with opened(given.listening.port, 1_100, addresses=addresses):
            await _all_are_answered(given, path)
            await _all_are_answered(given, path, address="127.0.0.9")


@pytest.mark.parametrize(
    "said", [b"", HALF, SLOW_BODY, REFUSED_BODY], ids=["nothing", "half a head", "half a body", "half a refused body"]
)
@pytest.mark.parametrize("addresses", [(HOST,), ADDRESSES], ids=["one", "several"])
async def test_nor_do_those_that_never_end_what_they_say(said: bytes, addresses: tuple[str, ...]) -> None:
    async with served(most=20, per_address=5) as given:
        with opened(given.listening.port, 60, addresses=addresses) as made:
            await asyncio.sleep(0)
            await said_by(made, said)

            await _all_are_answered(given, "/api/v1/jobs")


async def test_a_byte_now_and_then_keeps_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEADER_TIME", 0.3)
    monkeypatch.setattr(connection, "BODY_TIME", 0.3)
    async with served() as given:
        for said in (HALF, SLOW_BODY, REFUSED_BODY):
            reader, writer = await asyncio.open_connection(HOST, given.listening.port)
            writer.write(said)

            async def drip(writer: asyncio.StreamWriter = writer) -> None:
                while True:
                    await asyncio.sleep(0.02)
                    writer.write(b"a")

            dripping = asyncio.create_task(drip())
            try:
                await soon(reader.read(-1))
            except ConnectionResetError:
                pass
            finally:
                dripping.cancel()
                writer.close()


async def test_whoever_takes_no_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "WRITE_TIME", 0.2)
    async with windlass.connect("memory://") as client:
        await client.enqueue_many([windlass.NewJob("mine", {"text": "a" * 900_000}) for _ in range(16)])
        tokens = TokenList(a_token(secret_of(Role.ADMIN), name="ada", roles=[Role.ADMIN]))
        api = Api(client, auth=TokenAuth(tokens))
        async with Listening(api, HOST, 0) as listening:
            with socket.create_connection((HOST, listening.port)) as deaf:
                deaf.sendall(
                    b"GET /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\n"
                    b"authorization: Bearer " + secret_of(Role.ADMIN).encode() + b"\r\n\r\n"
                )
                await soon(until(lambda: listening.under_way == 1))

                # its request ends, and what it held is free
                await soon(_until_slowly(lambda: listening.under_way == 0))
                assert api.shared.reading.held("ada") == 0
        await api.close()


async def test_whoever_is_authenticated_stays_when_others_must_go() -> None:
    async with served(most=10, per_address=100) as given:
        reader, writer = await asyncio.open_connection(HOST, given.listening.port)
        request = (
            f"GET /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {secret_of(Role.ADMIN)}\r\n\r\n"
        ).encode()
        writer.write(request)
        assert b"200" in await soon(reader.readuntil(b"\r\n"))
        with opened(given.listening.port, 50):
            await _all_are_answered(given, "/api/v1/jobs")

            writer.write(request)
            assert b"200" in await soon(reader.readuntil(b"200"))
        writer.close()


@pytest.mark.parametrize("kind, path", [("api", "/api/v1/jobs"), ("dashboard", "/jobs")])
async def test_one_token_leaves_connections_to_others(kind: str, path: str) -> None:
    admin, viewer = secret_of(Role.ADMIN), secret_of(Role.VIEW)
    tokens = TokenList(
        a_token(admin, name="ada", roles=[Role.ADMIN]), a_token(viewer, name="vera", roles=[Role.VIEW], queues=["mine"])
    )
    async with windlass.connect("memory://") as client:
        job = await client.enqueue("mine", b"")
        made = Api(client, auth=TokenAuth(tokens)) if kind == "api" else Dashboard(client, auth=TokenAuth(tokens))
        async with Listening(made, HOST, 0, connections=20, stopping=made.stop_waiting) as listening:
            given = Served(listening)
            wait = f"/api/v1/jobs/{job.id}/wait?timeout=20"
            waits = [asyncio.create_task(given.asks(wait, token=viewer)) for _ in range(30)]
            await soon(until(lambda: listening.under_way == 18 and sum(each.done() for each in waits) == 12))

            assert await soon(given.asks(path, token=admin)) == 200
            assert await soon(given.asks(path, token=viewer)) == 429
            # 503 for some: all connections were at work until the first were refused
            assert {each.result() for each in waits if each.done()} <= {429, 503}
            await client.cancel(job.id)
            assert (await soon(asyncio.gather(*waits))).count(200) == 18
            assert await soon(given.asks(wait, token=viewer)) == 200
        await made.close()


async def test_probes_are_answered_where_all_connections_are_at_work() -> None:
    async with served(most=3) as given:
        claim = b'{"queues":["mine"],"wait":20}'
        waits = (
            f"POST /api/v1/claims HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {secret_of(Role.ADMIN)}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(claim)}\r\n\r\n"
        ).encode() + claim
        writers: list[asyncio.StreamWriter] = []
        for _ in range(3):
            _, writer = await asyncio.open_connection(HOST, given.listening.port)
            writer.write(waits)
            writers.append(writer)
        await soon(until(lambda: given.listening.under_way == 3))

        assert await soon(given.asks("/api/v1/jobs", token=secret_of(Role.ADMIN))) == 503
        assert await soon(given.asks(LIVE)) == 200
        assert await soon(given.asks(READY)) == 200
        for writer in writers:
            writer.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Make a certificate, and its key, for this host."""
    if OPENSSL is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    own = make_certificate(folder, "localhost", make_root(folder, "root"))
    return own.file, own.key


async def test_handshakes_that_never_end_shut_nobody_out(certificate: tuple[Path, Path]) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    async with served(most=20, per_address=5, tls=context) as given:
        with opened(given.listening.port, 60, addresses=ADDRESSES) as made:
            await said_by(made[:30], b"\x16\x03\x01")

            await _all_are_answered(given, "/api/v1/jobs", tls=True)


async def test_a_handshake_has_an_end(certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_handshake, "HANDSHAKE_TIME", 0.1)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    async with served(tls=context) as given:
        for said in (b"", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n\r\n"):
            reader, writer = await asyncio.open_connection(HOST, given.listening.port)
            writer.write(said)
            with suppress(ConnectionResetError):
                await soon(reader.read(-1))
            writer.close()
        assert await soon(given.asks(LIVE, tls=True)) == 200


@pytest.mark.parametrize("event_loop", ["asyncio", "uvloop"])
def test_a_handshake_that_begins_before_the_server_looks_is_answered(
    certificate: tuple[Path, Path], event_loop: EventLoop
) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)

    async def shake_hands() -> None:
        async with served(tls=context) as given:
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            peer = _trusting().wrap_bio(incoming, outgoing, server_hostname=HOST)
            with pytest.raises(ssl.SSLWantReadError):
                peer.do_handshake()
            # until the server has a turn, all that it will see is a connection and these bytes
            with socket.create_connection((HOST, given.listening.port)) as connection:
                connection.sendall(outgoing.read())
                connection.setblocking(False)  # noqa: FBT003 - the name of the parameter is `flag`
                incoming.write(await soon(asyncio.get_running_loop().sock_recv(connection, 65_536)))
                peer.do_handshake()

    with runner_on(event_loop) as runner:
        runner.run(shake_hands())


async def test_a_stop_waits_for_no_handshake(certificate: tuple[Path, Path]) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    async with served(tls=context) as given:
        with opened(given.listening.port, 3):
            await asyncio.sleep(0.05)

            await soon(given.listening.stop())


class Someone:
    """A connection as a crowd sees it."""

    def __init__(self, address: str = HOST, *, known: bool = False, asking: bool = False, since: float = 0.0) -> None:
        self.address = address
        self.is_authenticated = known
        self.is_asking = asking
        self.idle_since = since
        self.dropped = False

    def drop(self) -> None:
        self.dropped = True


async def _after_a_look() -> None:
    await asyncio.sleep(crowd.WORTH_A_LOOK * 1.5)


@pytest.mark.parametrize(
    "most, gone",
    [
        (6, []),
        (5, ["old"]),
        (4, ["old", "new"]),
        (3, ["old", "new", "asking"]),
        (2, ["old", "new", "asking", "rested"]),
    ],
)
async def test_those_go_first_who_are_missed_least(most: int, gone: list[str]) -> None:
    members = Crowd(most, most_per_address=100)
    now = asyncio.get_running_loop().time()
    given = {
        "at work": Someone(known=True, asking=True),
        "resting": Someone(known=True, since=now),
        "rested": Someone(known=True, since=now - 1),
        "asking": Someone(asking=True),
        "old": Someone(since=now),
        "new": Someone(since=now),
    }
    for each in given.values():
        members.enter(each)
    await _after_a_look()

    assert {name for name, each in given.items() if each.dropped} == {*gone}
    assert len(members) == most


async def test_an_address_has_its_own_limit_before_all_have_theirs() -> None:
    members = Crowd(100, most_per_address=3)
    ours = [Someone("10.0.0.1") for _ in range(5)]
    known = [Someone("10.0.0.1", known=True) for _ in range(5)]
    theirs = [Someone("10.0.0.2") for _ in range(3)]
    for each in [*ours, *known, *theirs]:
        members.enter(each)
    await _after_a_look()

    assert [each.dropped for each in ours] == [True, True, False, False, False]
    assert not any(each.dropped for each in [*known, *theirs])


async def test_when_it_is_crowded_there_is_less_time_to_say_something() -> None:
    members = Crowd(8, most_per_address=100)
    now = asyncio.get_running_loop().time()
    old = [Someone(since=now - crowd.CROWDED_TIME - 1) for _ in range(3)]
    new = [Someone(since=now) for _ in range(3)]
    for each in [*new, *old]:
        members.enter(each)
    await _after_a_look()
    assert not any(each.dropped for each in [*old, *new])

    members.enter(Someone(since=now))
    await _after_a_look()

    assert all(each.dropped for each in old)
    assert not any(each.dropped for each in new)


async def test_there_are_never_more_than_twice_as_many() -> None:
    members = Crowd(10, most_per_address=100)
    at_work = [Someone(known=True, asking=True) for _ in range(25)]
    for each in at_work:
        members.enter(each)

    assert len(members) == 20
    assert [each.dropped for each in at_work] == [False] * 20 + [True] * 5
    for each in at_work:
        members.leave(each)
        members.leave(each)
    assert len(members) == 0


def _trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def _until_slowly(true: Callable[[], bool]) -> None:
    while not true():  # noqa: ASYNC110 - what is looked at here has no event
        await asyncio.sleep(0.02)
