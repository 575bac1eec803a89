import logging

import pytest

from tests.http.given_tokens import SECRET, TokenList, a_token, bearer
from windlass.api.roles import Role
from windlass.core.errors import InvalidValue
from windlass.http.auth import Identity, NoAuth, RefuseAll, TokenAuth, auth_for, identity_of, is_loopback, set_identity
from windlass.http.refusal import Refusal
from windlass.http.sessions import Sessions

KNOWN = TokenList(a_token(queues=["email"], rate=5))
CI = Identity("ci", frozenset({Role.PRODUCE}), frozenset({"email"}), 5)
LOCAL = Identity("local", frozenset({Role.ADMIN}))


def test_whoever_has_a_token_is_known_by_it() -> None:
    assert TokenAuth(KNOWN).identify(dict([bearer()])) == CI


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_may_be_written_in_any_case(scheme: str) -> None:
    assert TokenAuth(KNOWN).identify({"authorization": f"{scheme} {SECRET}"}) == CI


@pytest.mark.parametrize(
    "given",
    [
        "",
        "Bearer",
        "Bearer ",
        SECRET,
        f"Bearer{SECRET}",
        f"Basic {SECRET}",
        f"Token {SECRET}",
        f"Bearer {SECRET}, Bearer {SECRET}",
        f"Bearer {SECRET} x",
        f"Bearer\t{SECRET}",
        f"Bearer {SECRET}\t",
        f"Bearer {SECRET[:-1]}",
        f"Bearer {SECRET.upper()}",
        'Bearer "' + SECRET + '"',
        "Bearer é\xff\x00",
        "Bearer " + "a" * 100_000,
    ],
)
def test_what_is_no_right_token_is_nobodys(given: str) -> None:
    assert TokenAuth(KNOWN).identify({"authorization": given}) is None


def test_without_headers_nobody_is_known() -> None:
    assert TokenAuth(KNOWN).identify({}) is None
    assert TokenAuth(KNOWN).identify({"cookie": f"windlass={SECRET}"}) is None
    assert TokenAuth(TokenList()).identify(dict([bearer()])) is None


def test_a_session_is_as_good_as_its_token() -> None:
    sessions = Sessions(KNOWN, secure=False)
    cookie = (sessions.begin(SECRET) or "").partition(";")[0]

    assert TokenAuth(KNOWN, sessions).identify({"cookie": cookie}) == CI


def test_a_wrong_token_is_not_made_up_for_by_a_right_cookie() -> None:
    sessions = Sessions(KNOWN, secure=False)
    cookie = (sessions.begin(SECRET) or "").partition(";")[0]

    assert TokenAuth(KNOWN, sessions).identify({"cookie": cookie, "authorization": "Bearer wl_no"}) is None


def test_nobody_is_known_where_nothing_was_said() -> None:
    assert RefuseAll().identify(dict([bearer()])) is None


def test_without_tokens_a_loopback_address_takes_everybody_for_the_administrator() -> None:
    assert auth_for("127.0.0.1", tokens=None).identify({}) == LOCAL
    assert NoAuth().identify(dict([bearer("wrong")])) == LOCAL


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "", "10.0.0.1", "jobs.example.com", "localhost.evil.test"])  # noqa: S104
def test_without_tokens_no_other_address_is_bound(bind: str) -> None:
    with pytest.raises(InvalidValue, match="windlass token new"):
        auth_for(bind, tokens=None)


def test_that_everybody_is_let_in_has_to_be_said_and_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    found = auth_for("10.0.0.1", tokens=None, insecure=True)

    assert found.identify({}) == LOCAL
    assert [each.levelno for each in caplog.records] == [logging.WARNING]


@pytest.mark.parametrize("bind", ["127.0.0.1", "10.0.0.1"])
@pytest.mark.parametrize("insecure", [True, False])
def test_with_tokens_only_they_count(bind: str, insecure: bool) -> None:  # noqa: FBT001
    found = auth_for(bind, tokens=KNOWN, insecure=insecure)

    assert found.identify({}) is None
    assert found.identify(dict([bearer()])) == CI


@pytest.mark.parametrize("bind", ["127.0.0.1", "127.8.9.1", "::1", "[::1]", "localhost", "LOCALHOST"])
def test_loopback_addresses_are_known(bind: str) -> None:
    assert is_loopback(bind)


@pytest.mark.parametrize("bind", ["", "0.0.0.0", "::", "10.0.0.1", "127.0.0.1.evil.test", "localhost.", "[::]"])  # noqa: S104
def test_others_are_no_loopback_addresses(bind: str) -> None:
    assert not is_loopback(bind)


def test_a_request_that_nobody_let_in_is_refused() -> None:
    with pytest.raises(Refusal) as refused:
        identity_of({"type": "http"})

    assert refused.value.status == 401


def test_a_route_finds_who_asks() -> None:
    scope = {"type": "http"}

    set_identity(scope, CI)

    assert identity_of(scope) is CI
