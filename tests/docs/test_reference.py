import inspect
import re
from datetime import timedelta

import pytest

import windlass
from tests.docs.pages import rows, text_of
from windlass import BlockingClient, Client, Job, State
from windlass.blocking.client import BlockingKeyValue
from windlass.blocking.layer import Blocking, BlockingListing
from windlass.client.kv import KeyValue
from windlass.codec import JSON
from windlass.connect import open_store
from windlass.core import names
from windlass.core.duration import LONGEST
from windlass.core.settings import DEFAULT, QueueSettings, Unset

HEADING = re.compile(r"^### `([\w.]+)\((.*)\)`$", re.MULTILINE)
CLIENT = text_of("reference/client.md")
DOCUMENTED = dict(HEADING.findall(CLIENT))
SETTINGS = rows("reference/settings.md", "keyword")
RESOLVED = {
    **{name: getattr(DEFAULT, name) for name in ("max_attempts", "lease", "priority", "retry")},
    **{f"keep_{end}": getattr(DEFAULT.keep, end) for end in ("succeeded", "dead", "cancelled")},
    "keep_max": open_store("sqlite:///jobs.db").features.keeps_at_most,
}


def public_methods(owner: type, prefix: str = "") -> dict[str, str]:
    """The methods of a class with their parameters, as the page writes them."""
    return {
        prefix + name: parameters(method)
        for name, method in inspect.getmembers(owner)
        if callable(method) and not name.startswith("_")
    }


def parameters(method: object) -> str:
    written: list[str] = []
    for parameter in list(inspect.signature(method).parameters.values())[1:]:  # type: ignore[arg-type]
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in written:
            written.append("*")
        written.append(parameter.name)
    return ", ".join(written)


def test_the_page_has_every_method_of_the_client_with_its_parameters() -> None:
    assert {**public_methods(Client), **public_methods(KeyValue, "kv.")} == DOCUMENTED


def test_the_blocking_client_has_every_method_of_the_page() -> None:
    blocking = {name for name in vars(BlockingClient) if not name.startswith("_")}
    of_values = {
        f"kv.{name}" for name, value in vars(BlockingKeyValue).items() if isinstance(value, Blocking | BlockingListing)
    }

    assert blocking - {"run", "schedules"} | of_values == set(DOCUMENTED)


def test_the_page_speaks_of_every_attribute_of_the_client() -> None:
    attributes = CLIENT.partition("## Attributes")[2]

    assert all(f"`{name}`" in attributes for name in Client.__annotations__)
    assert "`BlockingClient.run(call)`" in attributes


def test_the_page_has_every_keyword_of_connect() -> None:
    keywords = list(inspect.signature(windlass.connect).parameters)[1:]

    assert [keyword for keyword, *_ in SETTINGS] == keywords


@pytest.mark.parametrize("keyword,default", [(row[0], row[1]) for row in SETTINGS if row[0] != "worker"])
def test_a_setting_has_the_default_that_the_page_says(keyword: str, default: str) -> None:
    declared = inspect.signature(windlass.connect).parameters[keyword].default
    actual = RESOLVED[keyword] if isinstance(declared, Unset) else declared

    known = {name: getattr(windlass, name) for name in windlass.__all__} | {"timedelta": timedelta, "JSON": JSON}
    assert eval(default, known) == actual  # noqa: S307 - the page's own text


def test_the_page_has_the_most_records_that_stay_on_redis() -> None:
    [told] = [what for keyword, _, what, _ in SETTINGS if keyword == "keep_max"]

    assert told.endswith(f"On Redis it is {open_store('redis://db').features.keeps_at_most:,} unless it is given")


def test_a_queue_has_the_settings_that_the_page_says() -> None:
    keywords = [keyword for keyword, *_ in SETTINGS]
    [told] = [what for keyword, _, what, _ in SETTINGS if keyword == "queues"]
    but = re.findall(r"`(\w+)`", told.partition(", but ")[2])

    above = [keyword for keyword in keywords[: keywords.index("queues")] if keyword not in but]
    assert above == list(QueueSettings.__dataclass_fields__)


def test_the_page_has_every_option_of_a_sqlite_url_and_its_values() -> None:
    told = {name: re.findall(r"`(\w+)`", values) for name, values, _ in rows("reference/urls.md", "option")}

    with pytest.raises(windlass.InvalidURL, match=f"it takes {', '.join(told)}$"):
        windlass.connect("sqlite:///jobs.db?no-such-option=1")
    for name, values in told.items():
        with pytest.raises(windlass.InvalidURL, match=re.escape(f"takes {name}={'|'.join(values)}, not")):
            windlass.connect(f"sqlite:///jobs.db?{name}=no-such-value")


def test_the_page_has_every_field_of_a_job_in_order() -> None:
    assert tuple(field for field, *_ in rows("reference/job.md", "field")) == Job._fields


def test_the_page_has_every_state_and_says_which_are_ends() -> None:
    told = {state: bool(end) for state, _, end in rows("reference/job.md", "state")}

    assert told == {str(state): state.finished for state in State}


def test_the_page_has_the_limits_of_the_code() -> None:
    told = {what: number(most) for what, most, *_ in rows("reference/job.md", "what")}

    assert told == {
        "a name": names.MAX_NAME,
        "a payload, a result": names.MAX_PAYLOAD,
        "a kv key": names.MAX_KEY,
        "a kv value": names.MAX_VALUE,
        "the value of a header": names.MAX_HEADER,
        "the text of an error": names.MAX_ERROR,
        "a traceback": names.MAX_TRACEBACK,
        "a line of the log": names.MAX_LOG_LINE,
        "deliveries in `history`": names.HISTORY_KEPT,
        "lines in `log`": names.LOG_LINES_KEPT,
        "priority": names.MAX_PRIORITY,
        "max_attempts": names.MAX_ATTEMPTS,
        "a duration": LONGEST.days,
    }


def test_the_page_names_each_limit_that_programs_can_import() -> None:
    named = {name.strip("`"): number(most) for _, most, name, *_ in rows("reference/job.md", "what") if name}

    assert named == {name: getattr(windlass, name) for name in windlass.__all__ if name.startswith("MAX_")}


def number(text: str) -> int:
    found = re.match(r"([\d,]+)( KiB| MiB)?", text)
    assert found is not None
    return int(found[1].replace(",", "")) * {None: 1, " KiB": 1024, " MiB": 1024 * 1024}[found[2]]
