"""The options of a postgres:// URL, as the page has them."""

import re

import pytest

import windlass
from tests.docs.pages import rows
from windlass.connect import open_store
from windlass.stores.postgres.options import Options

OURS = rows("reference/urls.md", "name")
PASSED_ON = [name for names, _ in rows("reference/urls.md", "passed on") for name in re.findall(r"\w+", names)]
LEADING = [url for url, _ in rows("reference/urls.md", "URL") if url.startswith("postgres")]


def test_the_page_has_every_option() -> None:
    with pytest.raises(windlass.InvalidURL) as refused:
        windlass.connect("postgres://db/shop?no-such-option=1")

    taken = str(refused.value).partition("it takes ")[2].split(", ")
    assert sorted(taken) == sorted([*(name for name, *_ in OURS), *PASSED_ON])
    assert taken[: len(OURS)] == [name for name, *_ in OURS]


@pytest.mark.parametrize("name, values", [(name, values) for name, values, _ in OURS if "default)" in values])
def test_the_page_has_the_values_of_an_option(name: str, values: str) -> None:
    told = re.findall(r"`(\w+)`", values)

    with pytest.raises(windlass.InvalidURL, match=re.escape(f"takes {name}={'|'.join(told)}, not")):
        windlass.connect(f"postgres://db/shop?{name}=no-such-value")


@pytest.mark.parametrize("name, values", [(name, values) for name, values, _ in OURS if "by default" in values])
def test_the_page_has_the_range_and_the_default_of_a_number(name: str, values: str) -> None:
    least, most, default = re.findall(r"[\d.]*\d", values)

    assert getattr(Options("postgresql://db/shop"), name) == float(default)
    for number in (least, most):
        open_store(f"postgres://db/shop?{name}={number}")
    with pytest.raises(windlass.InvalidURL, match=re.escape(f"{name}={least} to {most}")):
        windlass.connect(f"postgres://db/shop?{name}=0")


@pytest.mark.parametrize("url", LEADING)
def test_every_url_of_the_page_can_be_read(url: str) -> None:
    open_store(url)
