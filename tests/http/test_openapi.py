import re
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from tests.http.asgi import ask
from tests.http.given_app import an_app, secret_of
from tests.http.given_tokens import bearer
from windlass.api.operations import OPERATIONS, REQUEST, ROOT
from windlass.api.roles import Role
from windlass.core.store_calls import RepeatSafety
from windlass.http.openapi import STATUSES, document
from windlass.http.openapi_examples import EXAMPLES

DOCUMENT = document()


def _told(path: str, method: str) -> Any:  # noqa: ANN401 - the JSON edge
    return DOCUMENT["paths"][path][method.lower()]


async def test_whoever_is_known_gets_the_document() -> None:
    path = "/api/v1/openapi.json"
    async with an_app() as given:
        known = await ask(given.api, "GET", path, headers=[bearer(secret_of(Role.VIEW))])
        unknown = await ask(given.api, "GET", path)

    assert (known.status, known.body, unknown.status) == (200, msgspec.json.encode(document()), 401)


def test_every_route_is_documented_under_a_name_of_its_own() -> None:
    names = [told["operationId"] for ways in document()["paths"].values() for told in ways.values()]

    assert len({*names}) == len(names)
    assert {*names} == {each.name for each in OPERATIONS} | {"live", "ready", "login", "logout", "openapi", "metrics"}


def test_each_operation_tells_its_roles_and_its_statuses() -> None:
    for operation in OPERATIONS:
        told = _told(operation.path, operation.method)
        assert {*told["x-roles"]} == {*operation.roles}
        assert {*map(int, told["responses"])} >= {200, 401, 403, 422, 429, 503, *operation.statuses}
        named = {each["name"] for each in told.get("parameters", ()) if each["in"] == "header"}
        assert bool(named) is (operation.repeat is not RepeatSafety.SAME)


def test_whatever_is_referred_to_is_there() -> None:
    made = document()
    refs = {*_refs(made)}

    assert len(refs) > 50
    for ref in refs:
        found: Any = made
        for part in ref.removeprefix("#/").split("/"):
            found = found[part]
    used = {int(ref.removeprefix("#/components/responses/Problem")) for ref in refs if "/responses/" in ref}
    assert used == {*STATUSES}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_what_is_asked_for(name: str) -> None:
    [operation] = [each for each in OPERATIONS if each.name == name]

    for example in EXAMPLES[name].values():
        msgspec.json.decode(msgspec.json.encode(example["value"]), type=operation.asks)


def _refs(value: Any) -> list[str]:  # noqa: ANN401 - the JSON edge
    match value:
        case {"$ref": str(ref)}:
            return [ref]
        case dict():
            return [ref for each in value.values() for ref in _refs(each)]  # pyright: ignore[reportUnknownVariableType]
        case list():
            return [ref for each in value for ref in _refs(each)]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return []


@pytest.mark.parametrize("name", ["news", "log"])
def test_the_events_of_a_stream_are_documented_as_they_are_told(name: str) -> None:
    [operation] = [each for each in OPERATIONS if each.name == name]
    schema = _told(operation.path, "GET")["responses"]["200"]["content"]["text/event-stream"]["schema"]

    assert schema["required"] == ["data"]
    assert schema["properties"]["data"]["contentMediaType"] == "application/json"
    assert schema["properties"]["data"]["contentSchema"]["$ref"].endswith(f"/{operation.tells.__name__}")


@pytest.mark.parametrize("field, where", [("payload_base64", "NewJob"), ("base64", "Base64Value")])
def test_what_is_base64_says_so_by_a_pattern(field: str, where: str) -> None:
    shape = DOCUMENT["components"]["schemas"][where]["properties"][field]
    [text] = [each for each in shape.get("anyOf", [shape]) if each["type"] == "string"]

    assert re.fullmatch(text["pattern"], "aGk=")
    assert re.fullmatch(text["pattern"], "")
    assert not re.fullmatch(text["pattern"], "aGk")


@pytest.mark.parametrize("header", [REQUEST, "Idempotency-Key", "idempotency-key"])
@pytest.mark.parametrize("key", ["order-42", '"order-42"'])
async def test_a_call_has_its_name_by_either_header(header: str, key: str) -> None:
    job = {"jobs": [{"queue": "mail"}]}
    path = f"{ROOT}/jobs"
    async with an_app() as given:
        headers = [bearer(secret_of(Role.PRODUCE)), (header, key)]
        first = await ask(given.api, "POST", path, headers=headers, json=job)
        again = await ask(given.api, "POST", path, headers=headers, json=job)

    assert (first.status, again.document) == (200, first.document)


async def test_an_idempotency_key_in_quotes_is_the_one_without_them_and_the_request_header_counts_first() -> None:
    job = {"jobs": [{"queue": "mail"}]}

    async with an_app() as given:

        async def enqueued(*headers: tuple[str, str]) -> Any:  # noqa: ANN401 - the JSON edge
            reply = await ask(
                given.api, "POST", f"{ROOT}/jobs", headers=[bearer(secret_of(Role.PRODUCE)), *headers], json=job
            )
            return reply.document["jobs"][0]["id"]

        one = await enqueued(("Idempotency-Key", "one"))
        assert await enqueued(("Idempotency-Key", '"one"')) == one
        assert await enqueued((REQUEST, "one"), ("Idempotency-Key", "two")) == one
        assert await enqueued(("Idempotency-Key", "two")) != one


@pytest.mark.parametrize("key", ["", "x" * 201, "with space", "é"])
async def test_an_idempotency_key_that_is_none_is_refused(key: str) -> None:
    async with an_app() as given:
        headers = [bearer(secret_of(Role.PRODUCE)), ("Idempotency-Key", key)]
        reply = await ask(given.api, "POST", f"{ROOT}/jobs", headers=headers, json={"jobs": [{"queue": "mail"}]})

        assert reply.status == 422
        assert (await given.client.stats()).pending == 0


@pytest.mark.parametrize(
    "path, body",
    [
        ("/jobs", {"jobs": [{"queue": "mail", "priority": 1.0}]}),
        ("/jobs", {"jobs": [{"queue": "mail", "priority": 1.5}]}),
        ("/jobs", {"jobs": [{"queue": "mail", "payload_base64": "aGk="}]}),
        ("/jobs", {"jobs": [{"queue": "mail", "payload_base64": "aGk"}]}),
        ("/jobs", {"jobs": [{"queue": "mail", "payload_base64": "no base64"}]}),
        ("/kv/write", {"key": "a", "value": "1"}),
        ("/kv/write", {"key": "", "value": "1"}),
        ("/kv/write", {"key": {"base64": "aGk="}, "value": "1"}),
        ("/kv/write", {"key": {"base64": ""}, "value": "1"}),
        ("/kv/write", {"key": {"base64": "aGk"}, "value": "1"}),
        ("/kv/scan", {"prefix": ""}),
        ("/kv/scan", {"after": ""}),
        ("/jobs/delete", {"filter": {"error_type": "Boom"}}),
        ("/jobs/delete", {"filter": {"error_type": ""}}),
        ("/jobs/delete", {"filter": {"payload_text": ""}}),
        ("/jobs/delete", {"filter": {"error": ""}}),
        ("/schedules/put", {"id": "a", "rule": "@daily", "job": {"queue": "mail", "parent_id": None}}),
        ("/schedules/put", {"id": "a", "rule": "@daily", "job": {"queue": "mail", "schedule_id": "b"}}),
        ("/jobs/delete", {"filter": {"text": "x" * 1001}}),
    ],
)
async def test_a_body_is_refused_by_the_document_when_the_api_refuses_it(path: str, body: object) -> None:
    told = _told(f"{ROOT}{path}", "POST")["requestBody"]["content"]["application/json"]["schema"]
    async with an_app() as given:
        reply = await given.post(path, body)

    assert reply.status in {200, 422}, reply.body
    assert _allowed(told, body) is (reply.status == 200), reply.body


@pytest.mark.parametrize("path", ["/jobs", "/jobs/newest"])
@pytest.mark.parametrize("name", ["error", "text", "error_type", "payload_text"])
@pytest.mark.parametrize("value", ["", "a"])
async def test_the_api_takes_each_text_to_search_for_that_the_document_allows(path: str, name: str, value: str) -> None:
    [told] = [each for each in _told(f"{ROOT}{path}", "GET")["parameters"] if each["name"] == name]
    async with an_app() as given:
        reply = await given.get(f"{path}?{name}={value}")

    assert _allowed(told["schema"], "a")
    assert reply.status == 200 or not _allowed(told["schema"], value), reply.body


def _allowed(schema: dict[str, Any], value: object) -> bool:
    """Whether a schema of the document allows a value."""
    return jsonschema_rs.is_valid({**schema, "components": DOCUMENT["components"]}, value)
