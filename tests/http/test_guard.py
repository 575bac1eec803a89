import asyncio
import logging

import msgspec
import pytest
from starlette.types import Message, Receive, Scope, Send

from tests.http.asgi import METHODS, REMOTE, Echo, Reply, Sender, ask
from tests.http.given_tokens import SECRET, TokenList, a_token, bearer, wrong_secrets
from windlass.api.problems import Problem, error_of
from windlass.api.roles import Role
from windlass.core.errors import InvalidValue, NotAllowed, StoreUnavailable
from windlass.http.auth import Auth, NoAuth, TokenAuth
from windlass.http.body import LARGEST_BODY, Gone
from windlass.http.guard import EVERY_REPLY, Guard, GuardSettings
from windlass.http.request_headers import Hosts
from windlass.http.sessions import Sessions
from windlass.testing import FakeClock

KNOWN = TokenList(a_token(roles=[Role.VIEW, Role.PRODUCE]))
JSON = ("content-type", "application/json")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def guard(echo: Echo, clock: FakeClock) -> Guard:
    return guarded(echo, clock)


def guarded(echo: Echo, clock: FakeClock, auth: Auth | None = None, *, largest_body: int = LARGEST_BODY) -> Guard:
    settings = GuardSettings(
        auth=auth or TokenAuth(KNOWN),
        hosts=Hosts("127.0.0.1", ["jobs.example.com"]),
        probes=frozenset({"/health/live"}),
        public=frozenset({"/login"}),
        largest_body=largest_body,
    )
    return Guard(echo.app, settings, clock=clock)


def is_protected(reply: Reply) -> bool:
    return all(reply.header(name.decode()) == value.decode() for name, value in EVERY_REPLY.items())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("path", ["/", "/api/v1/jobs", "/health/live", "/login", "/page", "/none", "//", "/%00", ""])
@pytest.mark.parametrize("address", [REMOTE, "127.0.0.1", None])
async def test_a_guard_that_was_told_nothing_refuses_everybody(
    echo: Echo, method: str, path: str, address: str | None
) -> None:
    reply = await ask(Guard(echo.app), method, path, headers=[bearer()], address=address)

    assert (reply.status, reply.error) == (401, "not_allowed")
    assert is_protected(reply)
    assert echo.reached == []


@pytest.mark.parametrize("method", METHODS)
async def test_whoever_has_a_token_is_let_in(guard: Guard, method: str) -> None:
    reply = await ask(guard, method, "/api/v1/jobs", headers=[bearer()])

    assert reply.status == 200
    assert is_protected(reply)
    assert method == "HEAD" or reply.document == {"name": "ci", "roles": ["produce", "view"], "size": 0}


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("authorization", "")],
        [("authorization", "Bearer")],
        [("authorization", f"Basic {SECRET}")],
        [bearer(SECRET[:-1])],
        [bearer(SECRET + "\xff")],
        [("cookie", f"windlass={SECRET}")],
        [("x-forwarded-user", "admin"), ("x-forwarded-for", "127.0.0.1")],
    ],
)
async def test_every_wrong_token_gets_the_same_answer(guard: Guard, headers: list[tuple[str, str]]) -> None:
    plain = await ask(guard)

    reply = await ask(guard, headers=headers)

    assert (reply.status, reply.headers, reply.body) == (401, plain.headers, plain.body)
    assert reply.header("www-authenticate") == "Bearer"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("host", ["evil.test", "localhost.", "localhost@evil.test", None])
async def test_a_request_for_another_host_is_misdirected(
    echo: Echo, clock: FakeClock, method: str, host: str | None
) -> None:
    for auth in (TokenAuth(KNOWN), NoAuth()):
        reply = await ask(guarded(echo, clock, auth), method, headers=[bearer()], host=host)
        assert (reply.status, reply.error) == (421, "misdirected")
        assert is_protected(reply)
    assert echo.reached == []


async def test_what_a_proxy_says_of_the_host_is_not_believed(guard: Guard) -> None:
    forwarded = [("x-forwarded-host", "localhost"), ("forwarded", "host=localhost"), bearer()]

    assert (await ask(guard, headers=forwarded, host="evil.test")).status == 421
    assert (await ask(guard, headers=[("x-forwarded-host", "evil.test"), bearer()])).status == 200


async def test_an_allowed_name_is_taken(guard: Guard) -> None:
    assert (await ask(guard, headers=[bearer()], host="jobs.example.com")).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize(
    "header", [("sec-fetch-site", "cross-site"), ("sec-fetch-site", "same-site"), ("origin", "null")]
)
async def test_on_a_loopback_address_without_tokens_no_foreign_page_changes_anything(
    echo: Echo, clock: FakeClock, method: str, header: tuple[str, str]
) -> None:
    reply = await ask(guarded(echo, clock, NoAuth()), method, headers=[header], json={})

    assert (reply.status, reply.error) == (403, "cross_site")
    assert echo.reached == []


@pytest.mark.parametrize("sent", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data", None])
async def test_a_body_that_is_not_json_is_refused(guard: Guard, echo: Echo, sent: str | None) -> None:
    kind = [] if sent is None else [("content-type", sent)]

    reply = await ask(guard, "POST", headers=[bearer(), ("content-length", "2"), *kind], sender=Sender([b"{}"]))

    assert (reply.status, reply.error) == (415, "unsupported_media_type")
    assert echo.reached == []


@pytest.mark.parametrize("sent", ["application/json", "Application/JSON", "application/json; charset=utf-8"])
async def test_a_body_of_json_reaches_the_app(guard: Guard, sent: str) -> None:
    headers = [bearer(), ("content-length", "2"), ("content-type", sent)]

    reply = await ask(guard, "POST", headers=headers, sender=Sender([b"{", b"}"]))

    assert (reply.status, reply.document["size"]) == (200, 2)


async def test_a_session_reaches_the_app_from_a_page_of_our_own_alone(echo: Echo, clock: FakeClock) -> None:
    sessions = Sessions(KNOWN, secure=False, clock=clock)
    guard = guarded(echo, clock, TokenAuth(KNOWN, sessions))
    cookie = ("cookie", (sessions.begin(SECRET) or "").partition(";")[0])

    assert (await ask(guard, "GET", headers=[cookie])).status == 200
    assert (await ask(guard, "POST", headers=[cookie, ("sec-fetch-site", "same-origin")], json={})).status == 200
    assert (await ask(guard, "POST", headers=[cookie], json={})).status == 403
    assert (await ask(guard, "POST", headers=[cookie, ("origin", "http://evil.test")], json={})).status == 403


@pytest.mark.parametrize("coding", ["gzip", "br", "deflate", "identity, gzip", "zstd", ""])
async def test_a_packed_body_is_refused(guard: Guard, coding: str) -> None:
    reply = await ask(guard, "POST", headers=[bearer(), ("content-encoding", coding)], json={})

    assert (reply.status, reply.error) == (415, "unsupported_media_type")


async def test_a_body_that_is_announced_too_large_is_refused_before_it_is_read(guard: Guard) -> None:
    sender = Sender([b"{}"])
    headers = [bearer(), JSON, ("content-length", str(LARGEST_BODY + 1))]

    reply = await ask(guard, "POST", headers=headers, sender=sender)

    assert (reply.status, reply.error, reply.header("connection")) == (413, "body_too_large", "close")
    assert sender.sent == 0


async def test_a_body_that_grows_too_large_is_refused_while_it_comes(echo: Echo, clock: FakeClock) -> None:
    sender = Sender([b"x" * 40] * 1_000)
    headers = [bearer(), JSON, ("transfer-encoding", "chunked")]

    reply = await ask(guarded(echo, clock, largest_body=100), "POST", headers=headers, sender=sender)

    assert (reply.status, reply.header("connection")) == (413, "close")
    assert sender.sent == 3
    assert echo.reached == []


async def test_a_body_of_the_largest_size_is_taken(echo: Echo, clock: FakeClock) -> None:
    headers = [bearer(), JSON, ("content-length", "100")]

    reply = await ask(guarded(echo, clock, largest_body=100), "POST", headers=headers, sender=Sender([b"x" * 50] * 2))

    assert reply.document["size"] == 100


@pytest.mark.parametrize("length", ["x", "-1", "+2", "1_0", "0x2", "2.0", "٣", "9" * 30, "2, 2"])
async def test_a_length_that_is_no_number_is_refused(guard: Guard, length: str) -> None:
    headers = [bearer(), JSON, ("content-length", length.encode().decode("latin-1"))]

    reply = await ask(guard, "POST", headers=headers, sender=Sender([b"{}"]))

    assert (reply.status, reply.error, reply.header("connection")) == (400, "bad_request", "close")


async def test_a_body_that_does_not_come_is_not_waited_for_longer_than_30_seconds(
    guard: Guard, echo: Echo, clock: FakeClock
) -> None:
    sender = Sender([b"{"], whole=False)
    headers = [bearer(), JSON, ("content-length", "2")]
    asked = asyncio.create_task(ask(guard, "POST", headers=headers, sender=sender))
    await clock.timers(1)

    await clock.let_pass(29)
    assert not asked.done()
    await clock.let_pass(1)
    reply = await asked

    assert (reply.status, reply.error, reply.header("connection")) == (408, "request_timeout", "close")
    assert echo.reached == []


async def test_whoever_hangs_up_in_the_middle_of_a_body_gets_no_reply(guard: Guard, clock: FakeClock) -> None:
    sender = Sender([b"{"], whole=False)
    headers = [bearer(), JSON, ("content-length", "2")]
    asked = asyncio.create_task(ask(guard, "POST", headers=headers, sender=sender))
    await clock.timers(1)

    sender.hang_up()

    assert (await asked).status == 0
    assert clock.waiting == 0


async def test_whoever_hangs_up_on_a_route_gets_no_reply(clock: FakeClock) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive, send
        raise Gone

    assert (await ask(Guard(app, GuardSettings(auth=NoAuth()), clock=clock))).status == 0


async def test_a_request_that_is_cancelled_while_its_body_comes_stays_cancelled(guard: Guard, clock: FakeClock) -> None:
    headers = [bearer(), JSON, ("content-length", "2")]
    asked = asyncio.create_task(ask(guard, "POST", headers=headers, sender=Sender([b"{"], whole=False)))
    await clock.timers(1)

    asked.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asked
    assert clock.waiting == 0


async def test_a_body_is_read_from_nobody_who_is_not_known(guard: Guard) -> None:
    sender = Sender([b"{}"])

    reply = await ask(guard, "POST", headers=[JSON, ("transfer-encoding", "chunked")], sender=sender)

    assert (reply.status, sender.sent, reply.header("connection")) == (401, 0, "close")


async def test_a_short_body_that_is_not_read_does_not_cost_the_connection(guard: Guard) -> None:
    reply = await ask(guard, "POST", json={})

    assert (reply.status, reply.header("connection")) == (401, None)


@pytest.mark.parametrize(
    "name", ["host", "authorization", "origin", "content-type", "content-length", "sec-fetch-site", "transfer-encoding"]
)
async def test_a_deciding_header_that_is_there_twice_is_refused(guard: Guard, echo: Echo, name: str) -> None:
    value = {"host": "localhost:8000", "authorization": bearer()[1]}.get(name, "0")

    reply = await ask(guard, headers=[bearer(), (name, value), (name, value)])

    assert (reply.status, reply.error, reply.header("connection")) == (400, "bad_request", "close")
    assert echo.reached == []


@pytest.mark.parametrize("host", ["evil.test", "10.1.2.3:8000", None])
async def test_a_probe_is_answered_to_everybody_by_any_name(guard: Guard, host: str | None) -> None:
    reply = await ask(guard, "GET", "/health/live", host=host)

    assert reply.document == {"live": True}
    assert is_protected(reply)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
async def test_a_probe_changes_nothing(guard: Guard, echo: Echo, method: str) -> None:
    assert (await ask(guard, method, "/health/live")).status == 401
    assert echo.reached == []


@pytest.mark.parametrize("path", ["/health/live/", "/health/live/x", "/health//live", "/HEALTH/live", "/x/health/live"])
async def test_no_other_path_is_taken_for_a_probe(guard: Guard, path: str) -> None:
    assert (await ask(guard, "GET", path)).status == 401


async def test_a_public_path_needs_no_token_but_all_the_rest(guard: Guard) -> None:
    assert (await ask(guard, "POST", "/login", json={})).status == 200
    assert (await ask(guard, "POST", "/login", json={}, host="evil.test")).status == 421
    assert (await ask(guard, "POST", "/login", json={}, headers=[("origin", "http://evil.test")])).status == 403


async def test_paths_count_from_where_the_app_is_mounted(guard: Guard) -> None:
    assert (await ask(guard, "GET", "/jobs/health/live", root_path="/jobs")).status == 200
    assert (await ask(guard, "GET", "/jobs/health/live")).status == 401


async def test_after_ten_wrong_tokens_an_address_has_to_wait(guard: Guard, clock: FakeClock) -> None:
    statuses = [(await ask(guard, headers=[bearer(each)])).status for each in wrong_secrets(10)]
    blocked = await ask(guard, headers=[bearer("wl_x")])

    assert statuses == [401] * 10
    assert (blocked.status, blocked.error, blocked.header("retry-after")) == (429, "too_many_requests", "2")
    clock.advance(2)
    assert (await ask(guard, headers=[bearer("wl_x")])).header("retry-after") == "4"


async def test_a_right_token_passes_however_many_wrong_ones_came(guard: Guard) -> None:
    for each in wrong_secrets(30):
        await ask(guard, headers=[bearer(each)])

    assert (await ask(guard, headers=[bearer()])).status == 200


async def test_another_address_need_not_wait(guard: Guard) -> None:
    for each in wrong_secrets(30):
        await ask(guard, headers=[bearer(each)])

    assert (await ask(guard, headers=[bearer("wl_x")], address="203.0.113.6")).status == 401


async def test_what_a_proxy_says_of_the_address_is_not_believed(guard: Guard) -> None:
    replies = [
        await ask(guard, headers=[bearer(each), ("x-forwarded-for", f"10.0.0.{number}")])
        for number, each in enumerate(wrong_secrets(11))
    ]

    assert replies[-1].status == 429


async def test_who_sends_no_token_tries_none(guard: Guard) -> None:
    statuses = [(await ask(guard, headers=[("cookie", "windlass=over")])).status for _ in range(30)]

    assert statuses == [401] * 30


async def test_a_token_that_asks_too_often_is_told_when_to_come_back(echo: Echo, clock: FakeClock) -> None:
    guard = guarded(echo, clock, TokenAuth(TokenList(a_token(rate=2))))

    replies = [await ask(guard, headers=[bearer()]) for _ in range(3)]

    assert [each.status for each in replies] == [200, 200, 429]
    assert (replies[2].error, replies[2].header("retry-after")) == ("too_many_requests", "1")
    clock.advance(1)
    assert (await ask(guard, headers=[bearer()])).status == 200


async def test_the_headers_that_a_page_sets_for_itself_stay(guard: Guard) -> None:
    reply = await ask(guard, path="/page", headers=[bearer()])

    assert reply.header("content-security-policy") == "default-src 'self'"
    assert reply.header("cache-control") == "max-age=60"
    assert reply.header("x-content-type-options") == "nosniff"


@pytest.mark.parametrize("path,status", [("/none", 404), ("/refused", 403), ("/page", 405)])
async def test_every_reply_of_the_app_is_protected(guard: Guard, path: str, status: int) -> None:
    reply = await ask(guard, "PUT" if status == 405 else "GET", path, headers=[bearer()])

    assert reply.status == status
    assert is_protected(reply) == (path != "/page" or status == 405)


def test_a_reply_is_for_this_site_alone() -> None:
    told = {name.decode(): value.decode() for name, value in EVERY_REPLY.items()}

    assert told == {
        "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "cache-control": "no-store",
    }


async def test_a_mistake_after_the_start_of_a_reply_is_left_to_the_server(clock: FakeClock) -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        await send({"type": "http.response.start", "status": 200, "headers": []})
        message = "half a reply"
        raise ValueError(message)

    with pytest.raises(ValueError, match="half a reply"):
        await ask(Guard(broken, GuardSettings(auth=NoAuth()), clock=clock))


async def test_an_error_of_ours_that_a_route_lets_out_is_told_as_what_it_is(clock: FakeClock) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive, send
        message = "limit must be an integer, not 'x'"
        raise InvalidValue(message)

    reply = await ask(Guard(app, GuardSettings(auth=NoAuth()), clock=clock))

    assert (reply.status, reply.error) == (422, "invalid_value")
    assert is_protected(reply)


async def test_every_reply_has_the_headers_that_were_asked_for(echo: Echo, clock: FakeClock) -> None:
    settings = GuardSettings(auth=TokenAuth(KNOWN), headers={"Windlass-Serving": "one"})
    guard = Guard(echo.app, settings, clock=clock)

    replies = [await ask(guard, headers=[bearer()]), await ask(guard), await ask(guard, host="evil.test")]

    assert [(each.status, each.header("windlass-serving")) for each in replies] == [
        (200, "one"),
        (401, "one"),
        (421, "one"),
    ]


@pytest.mark.parametrize("wrong", [True, False])
async def test_a_client_knows_what_it_may_try_again(echo: Echo, clock: FakeClock, wrong: bool) -> None:  # noqa: FBT001
    guard = guarded(echo, clock, TokenAuth(TokenList(a_token(rate=1))))
    await ask(guard, headers=[bearer()])

    reply = await ask(guard, headers=[] if wrong else [bearer()])

    error = error_of(msgspec.json.decode(reply.body, type=Problem))
    assert isinstance(error, StoreUnavailable)
    assert isinstance(error, NotAllowed) == wrong
    assert error.retryable == (not wrong)


async def test_a_mistake_before_any_reply_is_told_as_one(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive, send
        message = "wl_secret"
        raise ValueError(message)

    reply = await ask(Guard(broken, GuardSettings(auth=NoAuth()), clock=clock))

    assert (reply.status, reply.error) == (500, "internal")
    assert b"wl_secret" not in reply.body
    assert is_protected(reply)
    assert "a request ended by an error" in caplog.text


async def test_nobody_is_let_in_when_it_cannot_be_told_who_it_is(
    echo: Echo, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def identify(self, headers: object) -> None:
            del headers
            message = "the directory of users is away"
            raise OSError(message)

    reply = await ask(guarded(echo, clock, Broken()), headers=[bearer()])

    assert (reply.status, reply.error) == (500, "internal")
    assert echo.reached == []
    assert [each.levelno for each in caplog.records] == [logging.ERROR]


async def test_no_secret_is_logged_whatever_is_refused(guard: Guard, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    for each in (bearer(), bearer("wl_wrong"), ("cookie", "windlass=wl_wrong")):
        await ask(guard, "POST", headers=[each], host="evil.test")
        await ask(guard, "POST", headers=[each], json={})

    assert "wl_" not in caplog.text


@pytest.mark.parametrize(
    "value", ["evil\r\nSet-Cookie: a=b", "evil\nx", "\x1b[31mevil", "evil\0", "evil\x85x", "<script>"]
)
@pytest.mark.parametrize("name", ["host", "origin", "authorization", "content-type", "content-encoding", "cookie"])
async def test_nothing_of_a_request_gets_into_the_headers_of_a_reply(guard: Guard, name: str, value: str) -> None:
    host = value if name == "host" else "localhost"
    sent = [] if name == "host" else [(name, value)]

    reply = await ask(guard, "POST", host=host, headers=[*sent, ("content-length", "2")], sender=Sender([b"{}"]))

    assert reply.status in {400, 401, 403, 415, 421}
    told = b"".join(key + each for key, each in reply.headers)
    assert b"evil" not in told
    assert b"script" not in told
    assert not set(told) & set(b"\r\n\0\x1b")
    assert not set(reply.body) & set(b"\r\n\0\x1b")


async def test_web_sockets_are_refused_before_they_are_opened(guard: Guard, echo: Echo) -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await guard({"type": "websocket", "path": "/", "headers": [(b"host", b"localhost")]}, receive, send)

    assert [each["type"] for each in sent] == ["websocket.close"]
    assert echo.reached == []


async def test_the_start_and_the_end_of_the_app_pass_through(clock: FakeClock) -> None:
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del receive, send
        seen.append(scope["type"])

    async def receive() -> Message:
        return {"type": "lifespan.startup"}

    async def send(message: Message) -> None:
        del message

    await Guard(app, clock=clock)({"type": "lifespan"}, receive, send)

    assert seen == ["lifespan"]


async def test_a_stream_is_told_when_its_reader_has_gone(clock: FakeClock) -> None:
    heard: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, send
        while heard[-1:] != ["http.disconnect"]:
            heard.append((await receive())["type"])

    sender = Sender([b"{}"])
    sender.hang_up()
    guard = Guard(app, GuardSettings(auth=NoAuth()), clock=clock)
    await ask(guard, "POST", headers=[JSON, ("content-length", "2")], sender=sender)

    assert heard == ["http.request", "http.disconnect"]
