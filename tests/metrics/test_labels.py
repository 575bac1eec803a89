from windlass.engine.tally import Pair
from windlass.metrics.labels import Labels


def test_names_that_come_when_there_are_enough_are_called_other_and_the_others_stay() -> None:
    labels = Labels(queues=2, kinds=1, pairs=10)

    named = [labels.queue(name) for name in ("a", "b", "c", "a", "other")]
    pairs = [labels.pair("a", ""), labels.pair("b", "send"), labels.pair("c", "")]

    assert named == ["a", "b", "other", "a", "other"]
    assert pairs == [Pair("a", "(raw)"), Pair("b", "other"), Pair("other", "(raw)")]


def test_pairs_are_bounded_too() -> None:
    labels = Labels(pairs=2)

    pairs = [labels.pair("a", kind) for kind in ("x", "y", "z", "x")]

    assert pairs == [Pair("a", "x"), Pair("a", "y"), Pair("other", "other"), Pair("a", "x")]


def test_a_name_that_cannot_be_written_is_written_by_numbers_and_a_long_one_is_cut() -> None:
    assert Labels().queue("\ud800") == "\\ud800"
    assert Labels().queue("x" * 1_000) == "x" * 200
