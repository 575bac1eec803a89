import pytest

from windlass.api.roles import Role
from windlass.http.auth import Identity, check_queues, check_roles, check_unlimited, queues_in_reach, reaches
from windlass.http.refusal import Refusal


def who(*roles: Role, queues: frozenset[str] | None = None) -> Identity:
    return Identity("ci", frozenset(roles), queues)


LIMITED = who(Role.PRODUCE, queues=frozenset({"email", "a/b#c"}))


@pytest.mark.parametrize("has", Role)
@pytest.mark.parametrize("needs", Role)
def test_an_operation_is_for_those_who_have_its_role_and_for_administrators(has: Role, needs: Role) -> None:
    if has in (needs, Role.ADMIN):
        check_roles(who(has), [needs])
        return
    with pytest.raises(Refusal) as refused:
        check_roles(who(has), [needs])
    assert refused.value.status == 403


def test_one_of_several_roles_is_enough() -> None:
    check_roles(who(Role.VIEW, Role.WORK), [Role.PRODUCE, Role.WORK])


@pytest.mark.parametrize("roles", [[], [Role.VIEW, Role.OPERATE]])
def test_whoever_has_no_role_may_nothing(roles: list[Role]) -> None:
    with pytest.raises(Refusal):
        check_roles(who(), roles)


def test_an_operation_without_roles_is_for_administrators_alone() -> None:
    check_roles(who(Role.ADMIN), [])
    with pytest.raises(Refusal):
        check_roles(who(Role.VIEW, Role.PRODUCE, Role.WORK, Role.OPERATE), [])


def test_a_refusal_says_what_is_needed() -> None:
    with pytest.raises(
        Refusal, match="ci has the role produce, and this needs one of view, operate, admin: use another"
    ):
        check_roles(LIMITED, [Role.OPERATE, Role.VIEW])


@pytest.mark.parametrize("queue", ["email", "a/b#c"])
def test_a_queue_of_ones_own_is_in_reach(queue: str) -> None:
    assert reaches(LIMITED, queue)
    check_queues(LIMITED, [queue])


@pytest.mark.parametrize("queue", ["", "Email", "email2", "emai", "email/", "a/b", "*", "default"])
def test_no_other_queue_is_in_reach(queue: str) -> None:
    assert not reaches(LIMITED, queue)
    with pytest.raises(Refusal) as refused:
        check_queues(LIMITED, ["email", queue])
    assert refused.value.status == 403


def test_who_is_not_limited_reaches_all() -> None:
    assert reaches(who(Role.VIEW), "anything")
    assert queues_in_reach(who(Role.VIEW), None) is None
    assert queues_in_reach(who(Role.VIEW), ["a"]) == ["a"]
    check_unlimited(who(Role.VIEW))


def test_where_no_queue_is_named_those_in_reach_are_meant() -> None:
    assert queues_in_reach(LIMITED, None) == {"email", "a/b#c"}
    assert queues_in_reach(LIMITED, ["email"]) == ["email"]
    assert queues_in_reach(LIMITED, []) == []
    with pytest.raises(Refusal):
        queues_in_reach(LIMITED, ["email", "other"])


def test_what_is_about_no_queue_is_refused_to_whoever_is_limited() -> None:
    with pytest.raises(Refusal):
        check_unlimited(LIMITED)


def test_an_administrator_of_some_queues_is_limited_to_them() -> None:
    with pytest.raises(Refusal):
        check_queues(who(Role.ADMIN, queues=frozenset({"email"})), ["other"])
