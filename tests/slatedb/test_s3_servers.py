"""What a store asks of S3, on our server in memory and on those that it stands in for."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from tests.slatedb import s3
from tests.slatedb.asking import Told, ask
from tests.slatedb.moto_server import moto
from tests.slatedb.weed import Weed

_numbers = count()


class Caller:
    """Asks one server, below a prefix that nobody else uses."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.prefix = f"of-{next(_numbers)}"

    def key(self, method: str, key: str, body: bytes = b"", **headers: str) -> Told:
        return ask(self.endpoint, method, f"/{s3.BUCKET}/{self.prefix}/{key}", body, **headers)

    def listed(self, query: str = "", prefix: str = "") -> bytes:
        told = ask(self.endpoint, "GET", f"/{s3.BUCKET}?list-type=2&prefix={self.prefix}%2F{prefix}{query}")
        assert told.status == 200
        return told.body

    def keys(self, query: str = "", prefix: str = "") -> list[str]:
        return [key.removeprefix(f"{self.prefix}/") for key in named("Key", self.listed(query, prefix))]


def named(name: str, body: bytes) -> list[str]:
    return re.findall(f"<{name}>(.*?)</{name}>", body.decode())


@pytest.fixture(scope="module", params=["ours", "moto", "weed"])
def endpoint(request: pytest.FixtureRequest) -> Iterator[str]:
    match request.param:
        case "ours":
            yield s3.running().endpoint
        case "moto":
            with moto() as endpoint:
                yield endpoint
        case _:
            with Weed() as weed:
                yield weed.endpoint


@pytest.fixture
def caller(endpoint: str) -> Caller:
    return Caller(endpoint)


def test_what_is_put_is_there_for_all_who_ask(caller: Caller) -> None:
    put = caller.key("PUT", "a%20b%2Bc/d", b"body")

    got, head = caller.key("GET", "a%20b%2Bc/d"), caller.key("HEAD", "a%20b%2Bc/d")

    assert (put.status, got.status, got.body, head.status, head.body) == (200, 200, b"body", 200, b"")
    assert put.headers["etag"] == got.headers["etag"] == head.headers["etag"]
    assert head.headers["content-length"] == "4"
    assert "last-modified" in head.headers


def test_what_is_not_there_is_not_found(caller: Caller) -> None:
    assert (caller.key("GET", "none").status, caller.key("HEAD", "none").status) == (404, 404)
    assert b"NoSuchKey" in caller.key("GET", "none").body
    # nothing is to be done
    assert caller.key("DELETE", "none").status == 204


def test_an_object_is_created_once(caller: Caller) -> None:
    first, second = (caller.key("PUT", "a", body, if_none_match="*") for body in (b"first", b"second"))

    assert (first.status, second.status) == (200, 412)
    assert caller.key("GET", "a").body == b"first"


def test_what_is_told_of_an_object_is_given_with_it_also_to_who_came_too_late(caller: Caller) -> None:
    # by this a writer that missed an answer sees that it was its own write that came first
    caller.key("PUT", "a", b"first", if_none_match="*", x_amz_meta_writer="one")
    caller.key("PUT", "a", b"second", if_none_match="*", x_amz_meta_writer="two")

    assert caller.key("HEAD", "a").headers["x-amz-meta-writer"] == "one"
    assert caller.key("GET", "a").headers["x-amz-meta-writer"] == "one"


def test_an_object_is_replaced_only_by_who_knows_it(caller: Caller) -> None:
    etag = caller.key("PUT", "a", b"first").headers["etag"]

    replaced = caller.key("PUT", "a", b"second", if_match=etag)
    late = caller.key("PUT", "a", b"third", if_match=etag)

    assert (replaced.status, late.status, caller.key("GET", "a").body) == (200, 412, b"second")
    assert caller.key("PUT", "none", b"", if_match=etag).status in {404, 412}


def test_of_many_who_create_an_object_at_once_one_wins(caller: Caller) -> None:
    def create(number: int) -> Told:
        return caller.key("PUT", "a", b"%d" % number, if_none_match="*")

    with ThreadPoolExecutor(8) as pool:
        puts = list(pool.map(create, range(8)))

    assert sorted(put.status for put in puts) == [200] + [412] * 7
    assert caller.key("GET", "a").body == b"%d" % [put.status for put in puts].index(200)


@pytest.mark.parametrize(
    "asked, told, body",
    [
        ("bytes=2-4", "bytes 2-4/10", b"234"),
        ("bytes=7-", "bytes 7-9/10", b"789"),
        ("bytes=-2", "bytes 8-9/10", b"89"),
        ("bytes=8-20", "bytes 8-9/10", b"89"),
    ],
)
def test_a_part_of_an_object_is_read(caller: Caller, asked: str, told: str, body: bytes) -> None:
    caller.key("PUT", "a", b"0123456789")

    got = caller.key("GET", "a", range=asked)

    assert (got.status, got.headers["content-range"], got.body) == (206, told, body)


def test_a_part_behind_the_end_is_refused(caller: Caller) -> None:
    caller.key("PUT", "a", b"0123456789")

    assert caller.key("GET", "a", range="bytes=10-12").status == 416


def test_a_list_has_the_keys_of_a_prefix_in_their_order(caller: Caller) -> None:
    for key in ("b/2", "a/1", "b/10", "c"):
        caller.key("PUT", key, b"of four"[: len(key)])

    assert caller.keys() == ["a/1", "b/10", "b/2", "c"]
    assert caller.keys(prefix="b%2F") == ["b/10", "b/2"]
    assert caller.keys(query=f"&start-after={caller.prefix}%2Fb%2F10") == ["b/2", "c"]
    assert named("Size", caller.listed()) == ["3", "4", "3", "1"]
    caller.key("DELETE", "b/2")
    assert caller.keys() == ["a/1", "b/10", "c"]


def test_keys_below_a_delimiter_are_told_as_one(caller: Caller) -> None:
    for key in ("a/1", "b", "c/1", "c/2/3"):
        caller.key("PUT", key)

    told = caller.listed("&delimiter=%2F")

    assert named("Key", told) == [f"{caller.prefix}/b"]
    below = [each for each in named("Prefix", told) if each != f"{caller.prefix}/"]
    assert below == [f"{caller.prefix}/a/", f"{caller.prefix}/c/"]


@pytest.mark.parametrize("delimiter", ["", "&delimiter=%2F"])
def test_a_long_list_comes_in_pages(caller: Caller, delimiter: str) -> None:
    for number in range(5):
        caller.key("PUT", f"d{number}/a")
        caller.key("PUT", f"d{number}/b")
    found: list[str] = []
    token = ""

    for _ in range(10):
        told = caller.listed(f"{delimiter}&max-keys=3{token}")
        found += named("Prefix", told.replace(b"<Prefix>%s/</Prefix>" % caller.prefix.encode(), b""))
        found += named("Key", told)
        if named("IsTruncated", told) != ["true"]:
            break
        token = "&continuation-token=" + named("NextContinuationToken", told)[0].replace("/", "%2F").replace("=", "%3D")

    ends = [""] if delimiter else ["a", "b"]
    assert found == [f"{caller.prefix}/d{number}/{end}" for number in range(5) for end in ends]


def test_many_objects_are_deleted_by_one_call(caller: Caller) -> None:
    for key in ("a", "b&b", "c"):
        caller.key("PUT", key)
    names = "".join(f"<Object><Key>{caller.prefix}/{key}</Key></Object>" for key in ("a", "b&amp;b", "none"))
    body = f'<?xml version="1.0"?><Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{names}</Delete>'.encode()

    told = ask(caller.endpoint, "POST", f"/{s3.BUCKET}?delete=", body)

    assert told.status == 200
    assert caller.keys() == ["c"]


def test_parts_become_an_object_when_all_are_there(caller: Caller) -> None:
    large = b"a" * (5 * 2**20)
    [upload] = named("UploadId", caller.key("POST", "a?uploads=").body)
    etags = [
        caller.key("PUT", f"a?partNumber={number}&uploadId={upload}", body).headers["etag"]
        for number, body in [(1, large), (2, b"end")]
    ]
    assert caller.key("GET", "a").status == 404
    parts = "".join(f"<Part><PartNumber>{n}</PartNumber><ETag>{etag}</ETag></Part>" for n, etag in enumerate(etags, 1))

    told = caller.key(
        "POST",
        f"a?uploadId={upload}",
        f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode(),
    )

    assert told.status == 200
    assert caller.key("GET", "a").body == large + b"end"


def test_an_upload_that_is_given_up_leaves_nothing(caller: Caller) -> None:
    [upload] = named("UploadId", caller.key("POST", "a?uploads=").body)
    caller.key("PUT", f"a?partNumber=1&uploadId={upload}", b"part")

    assert caller.key("DELETE", f"a?uploadId={upload}").status == 204

    assert caller.keys() == []
    assert caller.key("PUT", f"a?partNumber=2&uploadId={upload}", b"part").status != 200


def test_a_bucket_that_is_not_there_is_named_as_the_reason(endpoint: str) -> None:
    assert b"NoSuchBucket" in ask(endpoint, "GET", "/no-such-bucket?list-type=2").body
