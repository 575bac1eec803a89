from typing import Any

import msgspec
import pytest

from tests.http.asgi import ask
from tests.http.given_app import an_app, secret_of
from tests.http.given_tokens import bearer
from windlass.api.operations import OPERATIONS, Repeat
from windlass.api.roles import Role
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
        assert bool(named) is (operation.repeat is not Repeat.SAME)


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
