"""The options of postgres://, redis://, slatedb+... and http:// URLs, as the page has them."""

import re

import pytest

import windlass
from tests.docs.pages import rows
from windlass.connect import open_store
from windlass.stores.http.options import Options as HttpOptions
from windlass.stores.postgres.options import Options
from windlass.stores.redis.options import Options as RedisOptions
from windlass.stores.slatedb.address import read_address

OURS = rows("reference/urls.md", "name")
PASSED_ON = [name for names, _ in rows("reference/urls.md", "passed on") for name in re.findall(r"\w+", names)]
ON_REDIS = [
    (name, values) for names, values, _ in rows("reference/urls.md", "parameter") for name in re.findall(r"\w+", names)
]
OVER_HTTP = [
    (name, values)
    for names, values, _ in rows("reference/urls.md", "http option")
    for name in re.findall(r"\w+", names)
]
ON_SLATEDB = {name: values for name, values, _ in rows("reference/urls.md", "slatedb option")}
CHOSEN = {"spread", "create", "migrate", "evicting", "tls"}
LEADING = [
    url
    for first in ("URL", "leads to", "form", "address", "kind of URL")
    for shown, _ in rows("reference/urls.md", first)
    for url in shown.replace("`", "").split(", ")
    if url.startswith(("postgres", "redis", "slatedb", "http"))
]


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


def test_the_page_has_every_option_of_redis_in_order() -> None:
    with pytest.raises(windlass.InvalidURL) as refused:
        windlass.connect("redis://db/0?no-such-option=1")

    assert str(refused.value).partition("it takes ")[2].split(", ") == [name for name, _ in ON_REDIS]


@pytest.mark.parametrize("name, values", [pair for pair in ON_REDIS if pair[0] in CHOSEN])
def test_the_page_has_the_values_of_an_option_of_redis(name: str, values: str) -> None:
    told = re.findall(r"\w+", values.replace("(default)", ""))

    with pytest.raises(windlass.InvalidURL, match=re.escape(f"takes {name}={'|'.join(told)}, not")):
        windlass.connect(f"redis://db/0?{name}=no-such-value")


@pytest.mark.parametrize("name", [name for name, values in ON_REDIS if values in {"text", "files", "a file"}])
def test_what_the_page_calls_a_text_can_be_any(name: str) -> None:
    beside = {"tls_cert": "&tls_key=other", "tls_key": "&tls_cert=other"}.get(name, "")

    open_store(f"redis+sentinel://db/jobs?tls=yes&{name}=anything{beside}")


@pytest.mark.parametrize("name, values", [pair for pair in ON_REDIS if "by default" in pair[1]])
def test_the_page_has_the_range_and_the_default_of_a_number_on_redis(name: str, values: str) -> None:
    least, most, default = re.findall(r"[\d.]*\d", values)

    assert getattr(RedisOptions("single", ()), name) == float(default)
    for number in (least, most):
        open_store(f"redis://db/0?{name}={number}")
    with pytest.raises(windlass.InvalidURL, match=re.escape(f"{name}={least} to {most}")):
        windlass.connect(f"redis://db/0?{name}={int(most) + 1}")


def test_the_page_has_the_prefix_that_a_store_has_without_one() -> None:
    [(_, values)] = [pair for pair in ON_REDIS if pair[0] == "prefix"]

    assert values.endswith(f"without it `{RedisOptions('single', ()).prefix}`")


def test_the_page_has_every_option_of_slatedb_in_order() -> None:
    with pytest.raises(windlass.InvalidURL) as refused:
        windlass.connect("slatedb+s3://acme-jobs?no-such-option=1")

    assert str(refused.value).partition("it takes ")[2].split(", ") == list(ON_SLATEDB)


@pytest.mark.parametrize("name", ["create", "take_over", "look"])
def test_the_page_has_the_values_of_an_option_of_slatedb(name: str) -> None:
    told = re.findall(r"\w+", ON_SLATEDB[name].replace("(default)", ""))

    with pytest.raises(windlass.InvalidURL, match=re.escape(f"takes {name}={'|'.join(told)}, not")):
        windlass.connect(f"slatedb+s3://acme-jobs?{name}=no-such-value")


def test_the_page_has_the_ranges_and_the_defaults_of_slatedb() -> None:
    least, most, default = re.findall(r"[\d.]*\d", ON_SLATEDB["timeout"])
    shortest, longest, example, usual, elsewhere = re.findall(r"\d+(?:ms|s)?", ON_SLATEDB["flush"])
    bucket = read_address("slatedb+s3", "acme-jobs", "/shop", {})
    folder = read_address("slatedb+file", "", "/srv/shop", {})

    assert (bucket.timeout, folder.timeout) == (float(default), float(default))
    assert f"{bucket.flush.total_seconds() * 1000:g}ms" == usual
    assert f"{folder.flush.total_seconds():g}" == elsewhere
    for option in (f"timeout={least}", f"timeout={most}", f"flush={shortest}", f"flush={longest}", f"flush={example}"):
        open_store(f"slatedb+s3://acme-jobs?{option}")
    with pytest.raises(windlass.InvalidURL, match=re.escape(f"timeout={least} to {most}")):
        windlass.connect(f"slatedb+s3://acme-jobs?timeout={int(most) + 1}")
    with pytest.raises(windlass.InvalidURL, match=re.escape(f"flush={shortest} to {longest}")):
        windlass.connect("slatedb+s3://acme-jobs?flush=11s")


def test_the_page_has_every_option_over_http_in_order() -> None:
    with pytest.raises(windlass.InvalidURL) as refused:
        windlass.connect("http://jobs?no-such-option=1")

    assert str(refused.value).partition("it takes ")[2].split(", ") == [name for name, _ in OVER_HTTP]


@pytest.mark.parametrize("name, values", [pair for pair in OVER_HTTP if "by default" in pair[1]])
def test_the_page_has_the_range_and_the_default_of_a_number_over_http(name: str, values: str) -> None:
    least, most, default = re.findall(r"[\d.]*\d", values)

    assert getattr(HttpOptions("jobs", 80), name) == float(default)
    for number in (least, most):
        open_store(f"http://jobs?{name}={number}")
    with pytest.raises(windlass.InvalidURL, match=re.escape(f"{name}={least} to {most}")):
        windlass.connect(f"http://jobs?{name}={int(most) + 1}")


@pytest.mark.parametrize("url", LEADING)
def test_every_url_of_the_page_can_be_read(url: str) -> None:
    open_store(url)
