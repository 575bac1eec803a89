import ast
import hmac
import inspect
import math
import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.http.given_tokens import SECRET, a_token
from windlass.api.roles import Role
from windlass.core.errors import InvalidValue
from windlass.http import tokens
from windlass.http.token_table import MOST_TOKENS, read_tokens, written_tokens
from windlass.http.tokens import KnownToken, find_token, hash_of, new_secret

NAMES = st.from_regex(r"[A-Za-z0-9_.:/@#-]{1,200}", fullmatch=True)
TOKENS = st.builds(
    KnownToken,
    name=NAMES,
    roles=st.frozensets(st.sampled_from(Role), min_size=1),
    sha256=st.from_regex(r"[0-9a-f]{64}", fullmatch=True),
    queues=st.none() | st.frozensets(NAMES, min_size=1, max_size=3),
    rate=st.none() | st.floats(min_value=0, max_value=1e6, exclude_min=True) | st.integers(1, 10**6).map(float),
)
GOOD = f'name = "ci"\nroles = ["produce"]\nsha256 = "{hash_of(SECRET)}"\n'


def test_a_token_has_256_bits_that_need_no_quoting() -> None:
    made = {new_secret() for _ in range(100)}

    assert len(made) == 100
    assert all(re.fullmatch(r"wl_[A-Za-z0-9_-]{43}", each) for each in made)


def test_what_is_kept_of_a_token_does_not_tell_it() -> None:
    secret = new_secret()

    assert secret not in repr(a_token(secret))
    assert secret[3:] not in written_tokens([a_token(secret)])


@pytest.mark.parametrize("place", range(5))
def test_the_token_is_found_wherever_it_stands(place: int) -> None:
    secrets = [new_secret() for _ in range(5)]
    known = [a_token(each, name=f"t{number}") for number, each in enumerate(secrets)]

    assert find_token(secrets[place], known) is known[place]


@pytest.mark.parametrize(
    "wrong", ["", " ", SECRET[:-1], SECRET + "a", SECRET.upper(), hash_of(SECRET), "wl_", "é" * 46, "\ud800", "\0"]
)
def test_what_is_no_token_is_not_found(wrong: str) -> None:
    assert find_token(wrong, [a_token()]) is None


@pytest.mark.parametrize("place", [0, 4, None])
def test_every_token_is_compared_in_constant_time_whichever_it_is(
    place: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = [new_secret() for _ in range(5)]
    compared: list[str] = []

    def noted(kept: str, presented: str) -> bool:
        compared.append(kept)
        return hmac.compare_digest(kept, presented)

    monkeypatch.setattr(tokens, "compare_digest", noted)
    find_token(SECRET if place is None else secrets[place], [a_token(each) for each in secrets])

    assert compared == [hash_of(each) for each in secrets]


def test_the_search_for_a_token_has_no_early_end_and_no_other_comparison() -> None:
    parts = list(ast.walk(ast.parse(inspect.getsource(find_token))))
    loops = [each for each in parts if isinstance(each, ast.For)]

    assert len(loops) == 1
    assert not [each for each in ast.walk(loops[0]) if isinstance(each, ast.Return | ast.Break | ast.Compare)]
    assert not [each for each in parts if isinstance(each, ast.Compare)]


@given(st.lists(TOKENS, max_size=5, unique_by=(lambda each: each.name, lambda each: each.sha256)))
def test_tokens_are_read_as_they_were_written(known: list[KnownToken]) -> None:
    assert list(read_tokens(written_tokens(known))) == known


def test_the_time_of_a_token_is_read_as_it_was_written() -> None:
    assert read_tokens(written_tokens([a_token()])) == (a_token(),)


def test_a_file_without_tokens_has_none() -> None:
    assert read_tokens("") == ()
    assert read_tokens(written_tokens([])) == ()


@pytest.mark.parametrize(
    "lines,said",
    [
        ("name", "no TOML"),
        ("[[[", "no TOML"),
        ("a = " + "[" * 10_000, "no TOML"),
        ("a = " + "9" * 5_000, "no TOML"),
        ("tokens = []", "did you mean 'token'"),
        ("token = 3", "write [[token]]"),
        ("token = [3]", "write [[token]]"),
        ("[token]\n" + GOOD, "write [[token]]"),
        ("[[token]]", "token 1 has no name"),
        ("[[token]]\nname = 3", "not a string"),
        ('[[token]]\nname = "a b"', "has the character ' '"),
        ('[[token]]\nname = "a\\r\\nb"', "has the character"),
        ('[[token]]\nname = "a\\u001b[31m"', "has the character"),
        ('[[token]]\nname = "a"\nrole = ["view"]', "did you mean 'roles'"),
        ('[[token]]\nname = "a"\nroles = ["view"]', "it has no sha256"),
        ("[[token]]\n" + GOOD.replace('roles = ["produce"]\n', ""), "it has no roles"),
        ("[[token]]\n" + GOOD.replace('["produce"]', "[]"), "roles is a list"),
        ("[[token]]\n" + GOOD.replace('["produce"]', '"produce"'), "roles is a list"),
        ("[[token]]\n" + GOOD.replace('"produce"', '"produces"'), "did you mean 'produce'"),
        ("[[token]]\n" + GOOD.replace('"produce"', "3"), "there are view, produce, work, operate, admin"),
        ("[[token]]\n" + GOOD.replace('"produce"', '"ADMIN"'), "there is no role 'ADMIN'"),
        ("[[token]]\n" + GOOD + "queues = []", "queues is a list"),
        ("[[token]]\n" + GOOD + 'queues = ["a b"]', "queue 'a b'"),
        ("[[token]]\n" + GOOD + 'queues = "a"', "queues is a list"),
        ("[[token]]\n" + GOOD + "rate = 0", "the rate"),
        ("[[token]]\n" + GOOD + "rate = -1", "the rate"),
        ("[[token]]\n" + GOOD + "rate = nan", "the rate"),
        ("[[token]]\n" + GOOD + "rate = inf", "the rate"),
        ("[[token]]\n" + GOOD + "rate = true", "the rate"),
        ("[[token]]\n" + GOOD + 'rate = "5"', "the rate"),
        ("[[token]]\n" + GOOD + "created_at = 2026-01-01T00:00:00", "with its offset"),
        ("[[token]]\n" + GOOD + 'created_at = "today"', "with its offset"),
        ("[[token]]\n" + GOOD.replace(hash_of(SECRET), "zz"), "64 hexadecimal digits"),
        ("[[token]]\n" + GOOD.replace(hash_of(SECRET), hash_of(SECRET).upper()), "64 hexadecimal digits"),
        ("[[token]]\n" + GOOD + "[[token]]\n" + GOOD, "two tokens are called 'ci'"),
        ("[[token]]\n" + GOOD + "[[token]]\n" + GOOD.replace("ci", "cd"), "'ci' and 'cd' are the same token"),
    ],
)
def test_what_is_wrong_is_refused_and_said(lines: str, said: str) -> None:
    with pytest.raises(InvalidValue, match=re.escape(said)) as refused:
        read_tokens(lines)

    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 400


def test_a_token_that_stands_where_its_hash_belongs_is_not_shown() -> None:
    with pytest.raises(InvalidValue) as refused:
        read_tokens("[[token]]\n" + GOOD.replace(hash_of(SECRET), SECRET))

    assert SECRET[3:] not in str(refused.value)


def test_more_tokens_than_can_be_compared_are_refused() -> None:
    many: Sequence[KnownToken] = [a_token(str(each), name=f"t{each}") for each in range(MOST_TOKENS + 1)]

    assert len(read_tokens(written_tokens(many[:-1]))) == MOST_TOKENS
    with pytest.raises(InvalidValue, match="1,001 tokens"):
        read_tokens(written_tokens(many))


def test_a_whole_rate_is_written_as_one() -> None:
    assert "rate = 50\n" in written_tokens([a_token(rate=50.0)])
    assert f"rate = {math.pi}\n" in written_tokens([a_token(rate=math.pi)])
