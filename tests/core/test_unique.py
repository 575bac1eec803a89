from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.errors import InvalidName, InvalidValue
from windlass.core.unique import Hold, Scope, Unique, hold

names = st.text(st.sampled_from("ab_-.:/@#"), min_size=1, max_size=4)
scopes = st.sampled_from(["queue", "kind", "global"])


class Wish(NamedTuple):
    scope: Scope
    queue: str
    kind: str | None
    tenant: str | None
    key: str

    def hold(self, payload: bytes = b"") -> Hold:
        unique = Unique(self.key, scope=self.scope)
        return hold(unique, queue=self.queue, kind=self.kind, tenant=self.tenant, payload=payload)

    def meant(self) -> tuple[str | None, ...]:
        place = {"queue": self.queue, "kind": self.kind, "global": None}[self.scope]
        return self.scope, place, self.tenant, self.key


wishes = st.builds(Wish, scopes, names, st.none() | names, st.none() | names, names)


@given(one=wishes, other=wishes)
def test_two_wishes_share_a_holder_if_and_only_if_they_mean_the_same(one: Wish, other: Wish) -> None:
    assert (one.hold().name == other.hold().name) == (one.meant() == other.meant())


def test_a_kind_is_no_queue_of_the_same_name() -> None:
    by_queue = Wish("queue", "email", "email", None, "k")

    assert by_queue.hold().name != by_queue._replace(scope="kind").hold().name


def test_a_tenant_is_part_of_the_key_in_every_scope() -> None:
    for scope in ("queue", "kind", "global"):
        wish = Wish(scope, "email", "send", "one", "k")
        assert wish.hold().name != wish._replace(tenant="two").hold().name


def test_a_plain_key_is_held_in_its_queue_until_claimed() -> None:
    wanted = hold(Unique("k"), queue="email", kind=None, tenant=None, payload=b"")

    assert (wanted.key, wanted.until, wanted.hold_for, wanted.on_conflict) == ("k", "claimed", None, "keep")


@pytest.mark.parametrize("until", [60, 60.0, timedelta(minutes=1)])
def test_a_key_may_be_held_by_time(until: float | timedelta) -> None:
    wanted = hold(Unique("k", until=until), queue="email", kind=None, tenant=None, payload=b"")

    assert (wanted.until, wanted.hold_for) == ("time", timedelta(minutes=1))


@given(one=st.binary(max_size=8), other=st.binary(max_size=8))
def test_equal_payloads_and_no_others_have_equal_digests(one: bytes, other: bytes) -> None:
    wish = Wish("queue", "email", None, None, "k")

    assert (wish.hold(one).digest == wish.hold(other).digest) == (one == other)


@pytest.mark.parametrize(
    "wrong",
    [
        {"scope": "tenant"},
        {"until": "started"},
        {"until": -1},
        {"until": float("nan")},
        {"on_conflict": "ignore"},
        {"on_conflict": "replace", "until": "finished"},
        {"on_conflict": "replace", "until": 60},
        {"on_conflict": "replace", "match_payload": True},
    ],
)
def test_a_wish_that_cannot_mean_anything_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        replace(Unique("k"), **wrong)


@pytest.mark.parametrize("key", ["", "a|b", "a b", "k" * 201])
def test_a_key_is_a_name(key: str) -> None:
    with pytest.raises(InvalidName, match="unique key"):
        Unique(key)
