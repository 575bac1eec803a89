import re

import pytest

from tests.http.given_tokens import SECRET, TokenList, a_token
from windlass.api.roles import Role
from windlass.http.sessions import LIFE, MOST_SESSIONS, Sessions
from windlass.testing import FakeClock

OTHER = "wl_" + "b" * 43


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def tokens() -> TokenList:
    return TokenList(a_token())


@pytest.fixture
def sessions(tokens: TokenList, clock: FakeClock) -> Sessions:
    return Sessions(tokens, secure=True, clock=clock)


def cookie_of(written: str | None) -> str:
    assert written is not None
    return written.partition(";")[0]


def test_a_login_gives_a_cookie_that_stands_for_the_token(sessions: Sessions) -> None:
    assert sessions.find(cookie_of(sessions.begin(SECRET))) == a_token()


@pytest.mark.parametrize("secret", ["", OTHER, SECRET[:-1], "\ud800"])
def test_a_login_with_a_wrong_token_gives_none(sessions: Sessions, secret: str) -> None:
    assert sessions.begin(secret) is None
    assert len(sessions) == 0


def test_on_tls_the_cookie_is_bound_to_the_very_host(sessions: Sessions) -> None:
    form = r"__Host-windlass=[A-Za-z0-9_-]{43}; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure"

    assert re.fullmatch(form, sessions.begin(SECRET) or "")


def test_without_tls_the_cookie_has_a_name_that_a_browser_takes(tokens: TokenList) -> None:
    form = r"windlass=[A-Za-z0-9_-]{43}; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict"

    assert re.fullmatch(form, Sessions(tokens, secure=False).begin(SECRET) or "")


def test_on_tls_the_name_that_anybody_could_set_is_not_looked_at(sessions: Sessions) -> None:
    cookie = cookie_of(sessions.begin(SECRET))

    assert sessions.find(cookie.removeprefix("__Host-")) is None


def test_each_login_has_an_id_of_its_own(sessions: Sessions) -> None:
    assert len({sessions.begin(SECRET) for _ in range(50)}) == 50


def test_a_login_ends_the_session_that_the_browser_had(sessions: Sessions) -> None:
    before = cookie_of(sessions.begin(SECRET))

    after = cookie_of(sessions.begin(SECRET, before))

    assert sessions.find(before) is None
    assert sessions.find(after) is not None


def test_an_id_that_somebody_put_there_is_worth_nothing_after_the_login(sessions: Sessions) -> None:
    planted = f"{sessions.cookie}={'x' * 43}"

    sessions.begin(SECRET, planted)

    assert sessions.find(planted) is None


def test_a_logout_ends_the_session_and_lets_the_browser_forget_it(sessions: Sessions) -> None:
    cookie = cookie_of(sessions.begin(SECRET))

    forgotten = sessions.end(cookie)

    assert sessions.find(cookie) is None
    assert forgotten == "__Host-windlass=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict; Secure"
    assert len(sessions) == 0


@pytest.mark.parametrize("cookies", ["", "a=b", ";;;", "__Host-windlass", "__Host-windlass=", "=x", "\xff=\xff"])
def test_a_logout_or_a_look_without_a_session_is_harmless(sessions: Sessions, cookies: str) -> None:
    cookie = cookie_of(sessions.begin(SECRET))

    assert sessions.find(cookies) is None
    sessions.end(cookies)

    assert sessions.find(cookie) is not None


def test_a_session_ends_after_twelve_hours_however_much_it_is_used(sessions: Sessions, clock: FakeClock) -> None:
    cookie = cookie_of(sessions.begin(SECRET))

    for _ in range(11):
        clock.advance(3600)
        assert sessions.find(cookie) is not None
    clock.advance(3600)

    assert LIFE == 12 * 3600
    assert sessions.find(cookie) is None
    assert len(sessions) == 0


def test_a_session_ends_when_its_token_is_gone(sessions: Sessions, tokens: TokenList) -> None:
    cookie = cookie_of(sessions.begin(SECRET))

    tokens.tokens.clear()
    assert sessions.find(cookie) is None
    tokens.tokens.append(a_token())

    assert sessions.find(cookie) is None


def test_another_token_of_the_same_name_is_not_the_sessions(sessions: Sessions, tokens: TokenList) -> None:
    cookie = cookie_of(sessions.begin(SECRET))

    tokens.tokens[:] = [a_token(OTHER)]

    assert sessions.find(cookie) is None


def test_a_session_may_what_its_token_may_by_now(sessions: Sessions, tokens: TokenList) -> None:
    cookie = cookie_of(sessions.begin(SECRET))

    tokens.tokens[:] = [a_token(roles=[Role.VIEW])]

    found = sessions.find(cookie)
    assert found is not None
    assert found.roles == {Role.VIEW}


def test_of_too_many_sessions_the_oldest_ends(sessions: Sessions) -> None:
    cookies = [cookie_of(sessions.begin(SECRET)) for _ in range(MOST_SESSIONS + 1)]

    assert len(sessions) == MOST_SESSIONS
    assert sessions.find(cookies[0]) is None
    assert sessions.find(cookies[1]) is not None
    assert sessions.find(cookies[-1]) is not None


def test_sessions_that_are_over_make_room(sessions: Sessions, clock: FakeClock) -> None:
    for _ in range(5):
        sessions.begin(SECRET)

    clock.advance(LIFE)
    sessions.begin(SECRET)

    assert len(sessions) == 1


def test_the_cookie_is_found_among_others(sessions: Sessions) -> None:
    cookie = cookie_of(sessions.begin(SECRET))

    assert sessions.find(f"a=b; {cookie}; theme=dark") is not None
    assert sessions.find(f"a=b;{cookie}") is not None


def test_of_two_cookies_of_the_name_none_counts(sessions: Sessions) -> None:
    cookie = cookie_of(sessions.begin(SECRET))

    assert sessions.find(f"{cookie}; {sessions.cookie}=x") is None
    assert sessions.find(f"{sessions.cookie}=x; {cookie}") is None


def test_the_id_of_a_session_is_kept_by_its_hash_alone(sessions: Sessions) -> None:
    made = cookie_of(sessions.begin(SECRET)).partition("=")[2]

    assert made not in repr(vars(sessions))
    assert SECRET not in repr(vars(sessions))
