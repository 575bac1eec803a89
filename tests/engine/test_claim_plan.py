from collections import Counter
from datetime import timedelta

from windlass.engine.claim_plan import ClaimPlan, Line
from windlass.engine.config import Order
from windlass.testing import SeededRng

SECOND = timedelta(seconds=1)
KINDS: frozenset[str | None] = frozenset({"work"})
ALSO_RAW = KINDS | {None}


def a_plan(*lines: Line, order: Order = "weighted") -> ClaimPlan:
    return ClaimPlan(lines, order=order, worker="me", draw=SeededRng().random)


def test_queues_that_are_asked_alike_are_one_request() -> None:
    plan = a_plan(Line("a", 1, SECOND, KINDS), Line("b", 1, SECOND, KINDS), order="strict")

    [request] = plan.requests(5)

    assert (request.queues, request.limit, request.lease, request.kinds, request.worker) == (
        ["a", "b"],
        5,
        SECOND,
        KINDS,
        "me",
    )


def test_in_strict_order_another_lease_or_a_consumer_between_makes_another_request() -> None:
    lines = [Line("a", 1, SECOND, KINDS), Line("b", 1, 2 * SECOND, KINDS), Line("c", 1, 2 * SECOND, ALSO_RAW)]

    requests = a_plan(*lines, order="strict").requests(1)

    assert [(request.queues, request.lease, request.kinds) for request in requests] == [
        (["a"], SECOND, KINDS),
        (["b"], 2 * SECOND, KINDS),
        (["c"], 2 * SECOND, ALSO_RAW),
    ]


def test_each_queue_is_first_as_often_as_its_weight_says() -> None:
    plan = a_plan(Line("a", 3, SECOND, KINDS), Line("b", 1, SECOND, KINDS))

    first = Counter(plan.requests(1)[0].queues[0] for _ in range(2_000))

    assert 1_400 < first["a"] < 1_600
    assert sum(first.values()) == 2_000


def test_no_queue_is_left_out_whatever_is_drawn() -> None:
    plan = a_plan(*[Line(name, weight, SECOND, KINDS) for name, weight in [("a", 1), ("b", 5), ("c", 100)]])

    assert all(sorted(plan.requests(1)[0].queues) == ["a", "b", "c"] for _ in range(100))


def test_by_priority_all_queues_are_asked_together_and_held_by_the_shortest_lease() -> None:
    plan = a_plan(Line("a", 1, 60 * SECOND, KINDS), Line("b", 1, SECOND, KINDS), order="priority")

    [request] = plan.requests(3)

    assert (request.queues, request.lease, request.by_priority) == (["a", "b"], SECOND, True)
    assert plan.leases == {"a": SECOND, "b": SECOND}


def test_a_plan_without_queues_asks_for_nothing() -> None:
    for order in ("weighted", "strict", "priority"):
        plan = a_plan(order=order)

        assert (plan.requests(5), plan.queues, dict(plan.leases)) == ([], [], {})


def test_only_by_priority_are_several_queues_asked_as_if_they_were_one() -> None:
    a, b, raw = (Line("a", 1, SECOND, KINDS), Line("b", 1, SECOND, KINDS), Line("c", 1, SECOND, ALSO_RAW))

    assert a_plan(a, b, order="priority").merges_queues
    for apart in (a_plan(a, b), a_plan(a, b, order="strict"), a_plan(a, order="priority"), a_plan(order="priority")):
        assert not apart.merges_queues
    assert not a_plan(a, raw, order="priority").merges_queues
