"""What a job carries, as people may see it."""

from typing import Any

import msgspec
import pytest

import windlass
from windlass.config.carried import TOO_DEEP, UNREADABLE, Carried, in_text, payload_of, result_of
from windlass.core.job import Job


async def _job(payload: object, **more: Any) -> Job:  # noqa: ANN401 - fields of a job
    async with windlass.connect("memory://") as client:
        await client.enqueue("mail", payload)
        claim = await client.claim("mail")
        assert claim is not None
        return claim.job._replace(**more)


@pytest.mark.parametrize(
    "payload, shown",
    [
        ({"to": "me", "password": "hush"}, {"to": "me", "password": "***"}),
        (b'{"token": "hush"}', {"token": "***"}),
        (b' [{"token": "hush"}]', [{"token": "***"}]),
        (b"7", "7"),
        (b"plain", "plain"),
        ("plain", "plain"),
        (b"", ""),
    ],
)
async def test_a_payload_is_read_as_what_it_is_without_its_secrets(payload: object, shown: object) -> None:
    assert payload_of(await _job(payload)) == Carried(shown)


async def test_bytes_that_are_no_text_are_told_in_hexadecimal() -> None:
    carried = payload_of(await _job(b"\xff\x00"))

    assert carried == Carried(None, b"\xff\x00")
    assert in_text(carried) == "2 bytes: ff 00"


@pytest.mark.parametrize("depth", [2_000, 100_000])
async def test_what_is_nested_too_deeply_to_look_for_secrets_is_not_shown(depth: int) -> None:
    deep = b"[" * depth + b'{"password": "hush"}' + b"]" * depth

    assert payload_of(await _job(deep, codec="json")) == Carried(TOO_DEEP)


@pytest.mark.parametrize(
    "data",
    [
        b'{"rate": NaN, "password": "hush"}',
        b'{"token": "hush"}\n{"token": "hush"}',
        b'\xef\xbb\xbf{"token": "hush"}',
        b'{"half": "\\ud800", "to": "me"}',
    ],
)
async def test_what_is_like_json_with_a_secret_and_cannot_be_read_is_not_shown(data: bytes) -> None:
    assert payload_of(await _job(data)) == Carried(UNREADABLE)
    assert result_of(await _job({}, result=data, result_codec="json")) == Carried(UNREADABLE)


async def test_what_cannot_be_read_is_shown_where_nothing_in_it_is_secret() -> None:
    lines = b'{"to": "me"}\n{"to": "you"}'

    assert payload_of(await _job(lines)) == Carried(lines.decode())
    assert payload_of(await _job(lines, headers={"windlass-secret": "to"})) == Carried(UNREADABLE)


async def test_what_a_job_returned_is_shown_likewise() -> None:
    done = await _job({}, result=msgspec.json.encode({"rows": 3, "password": "hush"}), result_codec="json")

    assert result_of(done) == Carried({"rows": 3, "password": "***"})
    assert result_of(await _job({})) == Carried(None)
