from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.config.forms import URL, Address, Choice, Form, Name, OrNone, Queues, Span, Switch, Text, Whole
from windlass.core.duration import LONGEST
from windlass.core.errors import InvalidValue

names = st.from_regex(r"[A-Za-z0-9_.:/@#-]{1,20}", fullmatch=True)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("30", timedelta(seconds=30)),
        ("1.5", timedelta(seconds=1.5)),
        (".5", timedelta(seconds=0.5)),
        ("0", timedelta(0)),
        ("250ms", timedelta(milliseconds=250)),
        ("30s", timedelta(seconds=30)),
        ("5m", timedelta(minutes=5)),
        ("2h", timedelta(hours=2)),
        ("7d", timedelta(days=7)),
        ("7 D", timedelta(days=7)),
    ],
)
def test_a_duration_in_text_is_seconds_or_has_a_unit(text: str, expected: timedelta) -> None:
    assert Span().read(text, "lease") == expected


@pytest.mark.parametrize(
    "text", ["soon", "5 minutes", "1h30m", "s", "", "nan", "inf", "1e3", "\u0663s", "0x10", "none"]
)
def test_a_duration_that_cannot_be_read_is_refused_with_examples(text: str) -> None:
    with pytest.raises(InvalidValue, match="lease must be a number of seconds, or like 250ms, 30s, 5m, 2h or 7d, not"):
        Span().read(text, "lease")


@pytest.mark.parametrize("text", ["-1s", "9" * 400, "40000d"])
def test_a_duration_out_of_bounds_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="lease must"):
        Span().read(text, "lease")


def test_an_interval_of_zero_is_refused() -> None:
    with pytest.raises(InvalidValue, match="poll_interval must be more than zero"):
        Span(zero=False).read("0s", "poll_interval")


@pytest.mark.parametrize(
    "value, shown",
    [
        (timedelta(0), "0s"),
        (timedelta(milliseconds=250), "250ms"),
        (timedelta(microseconds=1), "0.000001s"),
        (timedelta(seconds=90), "90s"),
        (timedelta(hours=24), "1d"),
        (timedelta(minutes=90), "90m"),
    ],
)
def test_a_duration_is_shown_in_the_largest_unit_without_a_fraction(value: timedelta, shown: str) -> None:
    assert Span().show(value) == shown


@given(value=st.timedeltas(timedelta(0), LONGEST))
def test_a_duration_that_is_shown_can_be_read_again(value: timedelta) -> None:
    assert Span().read(Span().show(value), "lease") == value


@pytest.mark.parametrize("text", ["on", "yes", "true", "1", "On", "TRUE"])
def test_a_switch_is_on(text: str) -> None:
    assert Switch().read(text, "services") is True


@pytest.mark.parametrize("text", ["off", "no", "false", "0", "Off"])
def test_a_switch_is_off(text: str) -> None:
    assert Switch().read(text, "services") is False


@pytest.mark.parametrize("text", ["maybe", "2", "", "none"])
def test_a_switch_between_on_and_off_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="services must be on or off"):
        Switch().read(text, "services")


@pytest.mark.parametrize("text, expected", [("5", 5), ("+5", 5), ("0", 0), ("2147483647", 2**31 - 1)])
def test_an_integer_in_text(text: str, expected: int) -> None:
    assert Whole().read(text, "concurrency") == expected


@pytest.mark.parametrize("text", ["five", "1.0", "1_000", "", "-1", "2147483648", "9" * 5000, "\u0665"])
def test_what_is_no_integer_within_bounds_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="concurrency must be"):
        Whole().read(text, "concurrency")


def test_none_is_read_and_shown_where_it_is_allowed() -> None:
    form = OrNone(Span())

    assert form.read("None", "keep_dead") is None
    assert form.check(None, "keep_dead") is None
    assert form.show(None) == "none"
    assert form.show(form.read("7d", "keep_dead")) == "7d"


@pytest.mark.parametrize(
    "text, expected",
    [
        ("email", {"email": 1}),
        ("email,default", {"email": 1, "default": 1}),
        ("email=3, default=1", {"email": 3, "default": 1}),
        ("email = 3 , default", {"email": 3, "default": 1}),
    ],
)
def test_queues_in_text_are_names_with_or_without_weights(text: str, expected: dict[str, int]) -> None:
    found: Any = Queues().read(text, "queues")

    assert list(found.items()) == list(expected.items())


@pytest.mark.parametrize(
    "text, advice",
    [
        ("email,,default", "is empty"),
        ("e mail", "character ' '"),
        ("email=", "the weight of 'email' must be an integer"),
        ("email=0", "the weight of 'email' must be from 1"),
        ("email=often", "the weight of 'email' must be an integer"),
        ("email,default,email", "'email' twice: to work it more often give it a weight, email=2"),
    ],
)
def test_queues_that_cannot_be_read_are_refused_with_advice(text: str, advice: str) -> None:
    with pytest.raises(InvalidValue, match=advice):
        Queues().read(text, "queues")


@pytest.mark.parametrize("value", ["email", b"email", 5, None, {"email"}])
def test_queues_are_a_sequence_or_a_mapping(value: object) -> None:
    with pytest.raises(InvalidValue, match="queues must be a sequence of queues, or a mapping of queues to weights"):
        Queues().check(value, "queues")


@pytest.mark.parametrize("value", [[], (), {}])
def test_no_queue_at_all_is_refused_with_advice(value: object) -> None:
    with pytest.raises(InvalidValue, match="set concurrency to 0"):
        Queues().check(value, "queues")


@given(weights=st.dictionaries(names, st.integers(1, 100), min_size=1))
def test_queues_that_are_shown_can_be_read_again(weights: dict[str, int]) -> None:
    found: Any = Queues().read(Queues().show(weights), "queues")

    assert list(found.items()) == list(weights.items())


def test_a_choice_is_one_of_its_words() -> None:
    form = Choice(("weighted", "strict"))

    assert form.read("Strict", "order") == "strict"
    with pytest.raises(InvalidValue, match="order must be one of 'weighted', 'strict', not 'random'"):
        form.read("random", "order")


@pytest.mark.parametrize("value", [[], {}, None, 1])
def test_a_choice_of_another_type_is_refused(value: object) -> None:
    with pytest.raises(InvalidValue, match="order must be one of"):
        Choice(("weighted", "strict")).check(value, "order")


def test_a_url_without_a_scheme_is_refused_and_not_shown() -> None:
    with pytest.raises(InvalidValue, match="it has no scheme://") as refused:
        URL().read("user:hunter2@host/db", "url")

    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("name", ["jobs.db", "/var/lib/jobs.sqlite3", "./data/jobs.db"])
def test_a_file_in_the_place_of_a_url_is_told_its_url(name: str) -> None:
    with pytest.raises(InvalidValue, match=f"it has no scheme://, did you mean sqlite:///{name}\\?"):
        URL().read(name, "url")


def test_what_is_neither_a_url_nor_a_store_is_refused() -> None:
    with pytest.raises(InvalidValue, match="or a store, not int"):
        URL().check(5, "url")


@pytest.mark.parametrize(
    "form, value",
    [(Whole(), True), (Whole(), 1.0), (Span(), True), (Span(), None), (Switch(), 1), (Switch(), "on"), (Name(), 5)],
)
def test_a_value_of_another_type_is_refused(form: Form, value: object) -> None:
    with pytest.raises(InvalidValue):
        form.check(value, "it")


@pytest.mark.parametrize(
    "given, kept, shown",
    [
        ("9400", ("127.0.0.1", 9400), "127.0.0.1:9400"),
        (9400, ("127.0.0.1", 9400), "127.0.0.1:9400"),
        ("jobs.example:0", ("jobs.example", 0), "jobs.example:0"),
        ("[::1]:9400", ("::1", 9400), "[::1]:9400"),
    ],
)
def test_an_address_is_a_port_with_a_host_or_without(given: object, kept: tuple[str, int], shown: str) -> None:
    form = Address()

    assert form.check(given, "metrics") == form.check(kept, "metrics") == form.read(shown, "metrics") == kept
    assert form.show(kept) == shown


@pytest.mark.parametrize(
    "value",
    ["", ":9400", "host", "host:", "::1:9400", "host:65536", "-1", "host:1e3", True, None, ("a", 1, 2), b"9400"],
)
def test_what_is_no_address_is_refused_with_examples(value: object) -> None:
    with pytest.raises(InvalidValue, match=r"metrics must be a port or HOST:PORT, such as 9400 or 0\.0\.0\.0:9400"):
        Address().check(value, "metrics")


def test_a_text_is_kept_as_it_is() -> None:
    assert Text().read("tasks:app", "app") == Text().check("tasks:app", "app") == "tasks:app"
    assert Text().show("tasks:app") == "tasks:app"


@pytest.mark.parametrize("value", ["", "  ", 3, None, ["tasks:app"]])
def test_what_is_no_text_or_says_nothing_is_refused(value: object) -> None:
    with pytest.raises(InvalidValue, match="app must be a text"):
        Text().check(value, "app")
