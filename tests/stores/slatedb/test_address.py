from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import pytest

import windlass
from windlass.connect import without_creating
from windlass.core.errors import InvalidURL
from windlass.stores.slatedb.address import Address, read_address

WRONG = [
    ("slatedb+memory://", "takes one name"),
    ("slatedb+memory://name/path", "no path"),
    ("slatedb+memory://a%20b", "takes one name"),
    ("slatedb+memory://name?endpoint=http://host", "takes no endpoint"),
    ("slatedb+file://folder", "three slashes"),
    ("slatedb+file:///", "three slashes"),
    ("slatedb+file:///a%00b", "three slashes"),
    ("slatedb+file:///a?region=x", "takes no region"),
    ("slatedb+s3://", "name of a bucket"),
    ("slatedb+s3:///prefix", "name of a bucket"),
    ("slatedb+s3://b/prefix", "name of a bucket"),
    ("slatedb+s3://buck%65t", "name of a bucket"),
    ("slatedb+s3://bucket:9000/prefix", "name of a bucket"),
    ("slatedb+s3://bucket/a//b", "cannot be one"),
    ("slatedb+s3://bucket/a/../b", "cannot be one"),
    ("slatedb+s3://bucket/a%0ab", "cannot be one"),
    (f"slatedb+s3://bucket/{'x' * 501}", "500 characters"),
    ("slatedb+s3://bucket?endpoint=host:9000", "endpoint=https://host"),
    ("slatedb+s3://bucket?endpoint=ftp://host", "endpoint=https://host"),
    ("slatedb+s3://bucket?endpoint=http://", "endpoint=https://host"),
    ("slatedb+s3://bucket?endpoint=http://host:port", "endpoint=https://host"),
    ("slatedb+s3://bucket?endpoint=http://[half", "endpoint=https://host"),
    (f"slatedb+s3://bucket?endpoint={quote('http://host/?a=b')}", "endpoint=https://host"),
    ("slatedb+s3://bucket?region=eu%20west", "region like"),
    ("slatedb+s3://bucket?timeout=0", "timeout=0.1 to 60"),
    ("slatedb+s3://bucket?timeout=61", "timeout=0.1 to 60"),
    ("slatedb+s3://bucket?timeout=1s", "timeout=0.1 to 60"),
    ("slatedb+s3://bucket?flush=20", "like 20ms"),
    ("slatedb+s3://bucket?flush=11s", "flush=0 to 10s"),
    ("slatedb+s3://bucket?flush=-1ms", "like 20ms"),
    ("slatedb+s3://bucket?take_over=maybe", "take_over="),
    ("slatedb+s3://bucket?create=maybe", "create=yes|no"),
    ("slatedb+s3://bucket?look=maybe", "look=yes|no"),
    ("slatedb+s3://bucket?flsh=20ms", "did you mean 'flush'"),
    ("slatedb+gs://bucket?endpoint=http://host", "takes no endpoint"),
    ("slatedb+az://bucket?region=x", "takes no region"),
    ("slatedb+s3x://bucket", "did you mean 'slatedb+s3'"),
]
SECRETS = [
    "slatedb+s3://id:hunter2@bucket/prefix",
    "slatedb+s3://bucket/prefix?secret_access_key=hunter2",
    "slatedb+s3://bucket/prefix?AWS_SECRET_ACCESS_KEY=hunter2",
    "slatedb+s3://bucket/prefix?access_key_id=hunter2",
    "slatedb+s3://bucket/prefix?session_token=hunter2",
    f"slatedb+s3://bucket?endpoint={quote('http://id:hunter2@host')}",
    "slatedb+gs://bucket?service_account=hunter2",
    "slatedb+az://box?sas_key=hunter2",
    "slatedb+file:///folder?password=hunter2",
]


def address_of(url: str) -> Address:
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return read_address(scheme, host, slash + path, {})


@pytest.mark.parametrize("url, advice", WRONG)
def test_a_wrong_url_is_refused_at_once_with_advice(url: str, advice: str) -> None:
    with pytest.raises(InvalidURL) as refused:
        windlass.connect(url)

    assert advice in str(refused.value)


@pytest.mark.parametrize("url", SECRETS)
def test_a_secret_in_a_url_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(InvalidURL) as refused:
        windlass.connect(url)

    assert "take it out" in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_whoever_puts_a_secret_into_a_url_is_told_where_it_belongs() -> None:
    with pytest.raises(InvalidURL, match="AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
        windlass.connect("slatedb+s3://id:secret@bucket")


@pytest.mark.parametrize(
    "url, place",
    [
        ("slatedb+memory://jobs", ("memory", "jobs", "", "slatedb+memory://jobs")),
        ("slatedb+file:///var/jobs/", ("file", "", "", "slatedb+file:///var/jobs")),
        ("slatedb+s3://bucket", ("s3", "bucket", "", "slatedb+s3://bucket")),
        ("slatedb+s3://bucket/a/b/", ("s3", "bucket", "a/b", "slatedb+s3://bucket/a/b")),
        ("slatedb+gs://bucket/a", ("gs", "bucket", "a", "slatedb+gs://bucket/a")),
        ("slatedb+az://container/a", ("az", "container", "a", "slatedb+az://container/a")),
    ],
)
def test_a_url_names_a_place(url: str, place: tuple[str, str, str, str]) -> None:
    address = address_of(url)

    assert (address.kind, address.bucket, address.prefix, address.where) == place


def test_a_folder_is_named_by_its_absolute_path() -> None:
    assert address_of("slatedb+file:///var/jobs").path == "/var/jobs"


def test_one_folder_is_one_place_however_it_is_spelt(tmp_path: Path) -> None:
    folder = tmp_path.resolve() / "jobs"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)

    spelt = [folder, f"{tmp_path}/./jobs", f"{tmp_path}//jobs", f"{folder}/../jobs", tmp_path / "link"]

    assert {address_of(f"slatedb+file://{each}").place for each in spelt} == {("file", "", str(folder), None)}


def test_only_buckets_wait_between_two_durable_writes() -> None:
    flushes = [
        address_of(f"slatedb+{rest}").flush for rest in ("memory://a", "file:///a", "s3://bucket", "gs://bucket")
    ]

    assert flushes == [timedelta(0), timedelta(0), timedelta(milliseconds=20), timedelta(milliseconds=20)]


@pytest.mark.parametrize(
    "text, meant",
    [
        ("0", timedelta(0)),
        ("0ms", timedelta(0)),
        ("20ms", timedelta(milliseconds=20)),
        ("0.5s", timedelta(milliseconds=500)),
        ("10s", timedelta(seconds=10)),
    ],
)
def test_the_time_between_two_durable_writes_is_a_duration(text: str, meant: timedelta) -> None:
    assert read_address("slatedb+s3", "bucket", "", {"flush": text}).flush == meant


def test_an_address_says_what_its_options_say() -> None:
    options = {"endpoint": "http://127.0.0.1:9000/", "region": "eu-central-1", "timeout": "2.5", "create": "no"}

    address = read_address("slatedb+s3", "bucket", "/a", {**options, "take_over": "1"})

    assert (address.endpoint, address.region, address.timeout) == ("http://127.0.0.1:9000", "eu-central-1", 2.5)
    assert (address.create, address.take_over, address.look) == (False, True, False)
    assert address.where == "slatedb+s3://bucket/a at http://127.0.0.1:9000"


def test_without_options_a_database_is_made_and_nobody_is_thrown_out() -> None:
    address = address_of("slatedb+s3://bucket")

    assert (address.create, address.take_over, address.look, address.timeout) == (True, False, False, 10.0)


def test_whoever_looks_makes_nothing() -> None:
    address = read_address("slatedb+file", "", "/a", {"look": "yes", "create": "yes"})

    assert (address.look, address.create) == (True, False)


@pytest.mark.parametrize(
    "url, only_there",
    [
        ("slatedb+memory://a", "slatedb+memory://a?look=yes&create=no"),
        ("slatedb+s3://bucket/a?take_over=1", "slatedb+s3://bucket/a?take_over=1&look=yes&create=no"),
        ("slatedb+file:///a?look=no", "slatedb+file:///a?look=no&create=no"),
        ("slatedb+file:///a?create=no&look=yes", "slatedb+file:///a?create=no&look=yes"),
    ],
)
def test_commands_that_only_look_open_a_reader(url: str, only_there: str) -> None:
    assert without_creating(url) == only_there
