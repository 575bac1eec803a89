from hypothesis import given
from hypothesis import strategies as st

from windlass.metrics.rising import Added, Highest


def test_a_count_is_added_as_far_as_it_has_grown_since_the_first_look() -> None:
    added = Added[str, int]()

    added.look({1: ("a", 10), 2: ("b", 3)})
    begun = dict(added.sums)
    added.look({1: ("a", 12), 2: ("b", 3), 3: ("a", 5)})

    assert begun == {"a": 0, "b": 0}
    assert added.sums == {"a": 7, "b": 0}


looks = st.lists(st.dictionaries(st.integers(0, 5), st.tuples(st.sampled_from("ab"), st.integers(0, 9))), max_size=6)


@given(looks)
def test_no_sum_ever_falls_whatever_a_store_says(found: list[dict[int, tuple[str, int]]]) -> None:
    added, highest = Added[str, int](), Highest[str]()

    for look in found:
        before = dict(added.sums), dict(highest.values)
        added.look(look)
        highest.look(dict(look.values()))
        for series, value in before[0].items():
            assert added.sums[series] >= value
        for series, value in before[1].items():
            assert highest.values[series] >= value
