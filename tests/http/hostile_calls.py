"""Every operation with hostile text in each place where it takes text, made from the OpenAPI document."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from windlass.api.operations import OPERATIONS, ROOT
from windlass.http.openapi import document

CORPUS = (
    "'; DROP TABLE job; --",
    "' OR '1'='1",
    '") UNION SELECT * FROM sqlite_master --',
    "a' || (SELECT sql FROM sqlite_master) || '",
    "%' ESCAPE '\\",
    "\\'; DELETE FROM windlass_job; --",
    "$1",
    ":queue",
    "?1",
    "' .. redis.call('FLUSHALL') .. '",
    "*",
    "../../etc/passwd",
    "{{7*7}}",
    "a\x00b",
    "\r\nX-Injected: 1",
    "ready|email|",
    "\U0001f600" * 50,
)
NO_JOB = "0190c5f0-3f2a-7c1b-9c2e-5d3a6f1b2c4d"
_DOCUMENT = document()
_SHAPES: Mapping[str, Any] = _DOCUMENT["components"]["schemas"]


class HostileCall(NamedTuple):
    method: str
    path: str
    body: Any
    where: str


def hostile_calls(text: str, job: str, *, ids: str = NO_JOB) -> Iterator[HostileCall]:
    """Return calls of every operation, each with `text` in one place, the rest as plain as it may be.

    They are about `job` where the path names one, and about `ids` where the body does.
    """
    for operation in OPERATIONS:
        path = operation.path.removeprefix(ROOT).replace("{id}", job)
        told: Any = _DOCUMENT["paths"][operation.path][operation.method.lower()]
        if operation.method == "GET":
            parameters = [each for each in told.get("parameters", ()) if each["in"] == "query"]
            for name in (each["name"] for each in parameters):
                plain = {each["name"]: _plain(each["schema"], ids) for each in parameters if each.get("required")}
                query = urlencode({**plain, name: text}, doseq=True)
                yield HostileCall("GET", f"{path}?{query}", None, f"{operation.name} {name}")
        else:
            schema = told["requestBody"]["content"]["application/json"]["schema"]
            for where, body in _bodies(schema, text, ids, depth=0):
                yield HostileCall("POST", path, body, f"{operation.name} {where}")


def _bodies(schema: Any, text: str, ids: str, depth: int) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - the JSON edge
    """Return values that fit a schema but for one text in them, and the place of that."""
    schema = _resolved(schema)
    for each in schema.get("anyOf", ()):
        yield from _bodies(each, text, ids, depth)
    match schema.get("type"):
        case "string" | None:
            if "anyOf" not in schema:
                yield "$", text
        case "array" if depth < 6:
            yield from ((f"[{where}]", [value]) for where, value in _bodies(schema["items"], text, ids, depth + 1))
        case "object" if depth < 6:
            yield from _objects(schema, text, ids, depth)
        case _:
            pass


def _objects(schema: Any, text: str, ids: str, depth: int) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - the JSON edge
    properties: Mapping[str, Any] = schema.get("properties", {})
    plain = {name: _plain(properties[name], ids) for name in schema.get("required", ())}
    for name, below in properties.items():
        for where, value in _bodies(below, text, ids, depth + 1):
            yield f"{name} {where}", {**plain, name: value}
    if isinstance(schema.get("additionalProperties"), dict):
        yield "names", {text: _plain(schema["additionalProperties"], ids)}


def _plain(schema: Any, ids: str) -> Any:  # noqa: ANN401 - the JSON edge
    schema = _resolved(schema)
    if "anyOf" in schema:
        return _plain(schema["anyOf"][0], ids)
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "string":
            if schema.get("format") == "date-time":
                return "2026-01-01T00:00:00Z"
            return ids if schema.get("description") == "A UUID." else "mine"
        case "integer" | "number":
            return max(schema.get("minimum", 1), 1)
        case "array":
            return [_plain(schema["items"], ids)] * max(1, schema.get("minItems", 0))
        case "object":
            return {name: _plain(schema["properties"][name], ids) for name in schema.get("required", ())}
        case "boolean":
            return False
        case _:
            return None


def _resolved(schema: Any) -> Any:  # noqa: ANN401 - the JSON edge
    return _SHAPES[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
