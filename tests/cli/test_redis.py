"""What commands say of a store on Redis."""

from collections.abc import Iterator

import pytest

from tests.cli.conftest import Run
from tests.redis.asking import ask
from tests.redis.keys import keys_of, prefix_of, with_options
from tests.redis.server import new_url

CURRENT = "the schema is current: version 1 of 1\n"


@pytest.fixture
def url() -> Iterator[str]:
    with new_url() as url:
        yield url


def test_the_doctor_makes_no_store_where_there_is_none(run: Run, url: str) -> None:
    done = run("doctor", "--url", url)

    assert (done.code, done.err) == (5, "")
    assert "there is no store at redis://" in done.out
    assert "-> look whether the URL is right; the first enqueue, or windlass migrate, makes what is missing" in done.out
    assert keys_of(url) == set()


def test_the_doctor_tells_what_the_server_keeps(run: Run, url: str) -> None:
    run("migrate", "--url", url)

    told = run("doctor", "--json", "--url", url).document["findings"]

    assert {"server", "durability", "memory", "replicas"} <= {finding["name"] for finding in told}


def test_a_store_is_made_and_left_as_it_is(run: Run, url: str) -> None:
    planned = run("migrate", "--plan", "--url", url)
    made = run("migrate", "--url", url)
    again = run("migrate", "--url", url)

    assert planned.code == 1
    assert (made.out, again.out) == (f"migration 1 is applied\n{CURRENT}", CURRENT)
    assert run("enqueue", "--queue", "email", "--payload", "x", "--url", with_options(url, "create=no")).code == 0


def test_the_command_that_makes_a_store_can_be_run_by_hand(run: Run, url: str) -> None:
    printed = run("migrate", "--sql", "--url", url).out

    ask(url, *printed.split())

    assert printed == f"HSET {{{prefix_of(url)}}}|meta layout 1\n"
    assert run("migrate", "--plan", "--url", url).out == CURRENT
    assert run("migrate", "--sql", "--url", url).out == ""


def test_a_url_that_forbids_to_make_a_store_is_obeyed(run: Run, url: str) -> None:
    refused = run("migrate", "--url", with_options(url, "create=no"))

    assert (refused.code, keys_of(url)) == (5, set())
    assert "?create=no forbids making one" in refused.err
