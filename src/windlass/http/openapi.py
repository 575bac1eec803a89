"""One OpenAPI document, made from the table of operations."""

from collections.abc import Collection, Mapping
from functools import cache
from inspect import cleandoc
from typing import Any, Final, TypeAlias, cast

import msgspec
from starlette.types import Receive, Scope, Send

from windlass.api.about import Health, SessionTold
from windlass.api.calls import Nothing
from windlass.api.operations import IDEMPOTENCY_KEY, LOG, NEWS, OPERATIONS, REQUEST, ROOT, SERVING, Operation
from windlass.api.problems import Problem
from windlass.api.roles import Role
from windlass.client.wanted import REFUSED
from windlass.core.job import ORIGIN_FIELDS
from windlass.core.store_calls import RepeatSafety
from windlass.http.asked import ANYTHING
from windlass.http.auth import identity_of
from windlass.http.health import LIVE, READY
from windlass.http.login import SESSION, LoginAsked
from windlass.http.openapi_examples import EXAMPLES
from windlass.http.reply import Reply
from windlass.http.routes.metrics import METRICS
from windlass.metrics.exposition import TEXT

OPENAPI: Final = f"{ROOT}/openapi.json"

Shape: TypeAlias = dict[str, Any]

STATUSES: Final[Mapping[int, str]] = {
    400: "The request cannot be read: its body is not JSON, or a header is there twice",
    401: "No token, or one that is not known",
    403: "The token does not allow it, or a page of another site has sent it",
    404: "There is no such thing",
    408: "The body did not come in time",
    409: "It was refused as things stand; `outcome_unknown`: a repeat that may have been done before",
    410: "The jobs of this store live elsewhere now: the fact `to` tells where",
    413: "The body is too large",
    415: "The body is not sent as application/json",
    421: "The name in the header Host is none of this process",
    422: "What was sent does not fit; the message tells where",
    429: "Too many requests, or too many wrong tokens: `Retry-After` tells when to come back",
    503: "The store cannot be reached: try again",
}
"""What each status of a problem means."""
ALWAYS: Final = (400, 401, 403, 421, 422, 429, 503)
WITH_BODY: Final = (408, 410, 413, 415)

_ABOUT: Final = """\
A durable job queue over HTTP.

All is JSON. Durations are numbers of seconds, times ISO 8601 in UTC, and bytes base64 in fields whose name ends with
`_base64`. A field that is not known is refused in what is sent, and to be ignored in what is told: later versions tell
more.

Every call but a look may carry the header `Windlass-Request` with a name of the caller's choice, a UUID for example.
When the reply is lost, the call is repeated with the same name, and the header `Windlass-Serving` with what the first
reply of the process told: it is done once, and answered again."""


class Document:
    """Answers with the document, to whoever is known."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Tell what there is."""
        del receive
        identity_of(scope)
        await Reply(200, written()).send(send)


@cache
def written() -> bytes:
    """Return the document as JSON."""
    return msgspec.json.encode(document())


def document() -> Shape:
    """Return the document."""
    shapes = {shape for operation in OPERATIONS for shape in (operation.asks, operation.tells)}
    shapes |= {Problem, Health, LoginAsked, SessionTold, Nothing}
    ordered = sorted(shapes, key=lambda shape: shape.__name__)
    refs, components = msgspec.json.schema_components(ordered, ref_template="#/components/schemas/{name}")
    schemas = dict(zip(ordered, refs, strict=True))
    asked = _reached([schemas[operation.asks] for operation in OPERATIONS], components)
    for name, condition in _CONDITIONS.items():
        components[name]["allOf"] = [condition]
    paths: dict[str, Shape] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, schemas, components)
    paths.update(_others(schemas))
    responses = {_PROBLEM.format(status): _problem(status, schemas[Problem]) for status in STATUSES}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Windlass", "version": "1", "summary": "A durable job queue", "description": _ABOUT},
        "security": [{"token": []}, {"session": []}],
        "paths": paths,
        "components": {
            "schemas": {
                name: _tidy(_exact(shape) if name in asked else shape) for name, shape in sorted(components.items())
            },
            "responses": responses,
            "securitySchemes": _SECURITY,
        },
    }


_SECURITY: Final[Shape] = {
    "token": {"type": "http", "scheme": "bearer", "description": "A token that `windlass token new` has made."},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "windlass",
        "description": "The session of a browser; by TLS the cookie is called `__Host-windlass`.",
    },
}


def _operation(operation: Operation[Any, Any], schemas: Mapping[type, Shape], components: Mapping[str, Shape]) -> Shape:
    roles = [role.value for role in Role if role in operation.roles]
    made: Shape = {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": f"{_REPEATS[operation.repeat]} Roles: {', '.join(roles)}.",
        "tags": [operation.path.removeprefix(ROOT).strip("/").partition("/")[0] or "about"],
        "x-roles": roles,
    }
    parameters = [_ID] if "{id}" in operation.path else []
    if operation.method == "GET":
        parameters += _query(schemas[operation.asks], components)
    else:
        body: Shape = {"schema": schemas[operation.asks]}
        if operation.name in EXAMPLES:
            body["examples"] = EXAMPLES[operation.name]
        made["requestBody"] = {"required": True, "content": {"application/json": body}}
    if operation.repeat is not RepeatSafety.SAME:
        parameters += _NAMES
    if parameters:
        made["parameters"] = parameters
    told = _streamed(operation, schemas) if operation.name in _STREAMS else _json(schemas[operation.tells])
    done = {"description": "Done.", "headers": _SERVED, "content": told}
    made["responses"] = {"200": done, **_problems(operation)}
    return made


_REPEATS: Final[Mapping[RepeatSafety, str]] = {
    RepeatSafety.SAME: "It may be repeated at will.",
    RepeatSafety.STORE: "Repeated under the same name it is done once, whatever was restarted in between.",
    RepeatSafety.REPLY: "Repeated under the same name within ten minutes it is done once; after a restart of the "
    "serving process a repeat is refused with `outcome_unknown`.",
}
_ID: Final[Shape] = {
    "name": "id",
    "in": "path",
    "required": True,
    "description": "The id of a job.",
    "schema": {"type": "string", "pattern": "^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$"},
}
_NAMES: Final[list[Shape]] = [
    {
        "name": REQUEST,
        "in": "header",
        "description": "The name of the call, which a repeat of it has too.",
        "schema": {"type": "string", "pattern": "^[!-~]{1,200}$"},
    },
    {
        "name": IDEMPOTENCY_KEY,
        "in": "header",
        "description": f"The same by the name that other APIs give it; where both are sent `{REQUEST}` counts.",
        "schema": {"type": "string", "pattern": '^([!#-~][!-~]{0,198}|"[!#-~]{1,200}")$'},
    },
    {
        "name": SERVING,
        "in": "header",
        "description": "In a repeat: the process that the call was first sent to, as its replies told.",
        "schema": {"type": "string"},
    },
]
_SERVED: Final[Shape] = {
    SERVING: {"description": "The serving process, another one after each start.", "schema": {"type": "string"}}
}
_STREAMS: Final[Mapping[str, str]] = {
    NEWS.name: 'An event of the stream, as in `data: {"topics":["queue:email"]}`; comments tell that the stream lives.',
    LOG.name: "An event of the stream. The first has all lines that there are, each later one the new ones. The stream "
    "ends after one with `ended`; comments tell that it lives.",
}


def _streamed(operation: Operation[Any, Any], schemas: Mapping[type, Shape]) -> Shape:
    """Return the media type of a stream; before OpenAPI 3.2 its schema is that of each event."""
    data = {"type": "string", "contentMediaType": "application/json", "contentSchema": schemas[operation.tells]}
    event = {"type": "object", "required": ["data"], "properties": {"data": data}}
    return {"text/event-stream": {"schema": {**event, "description": _STREAMS[operation.name]}}}


def _query(ref: Shape, components: Mapping[str, Shape]) -> list[Shape]:
    """Return the fields of a record as parameters of a query, where nothing is null."""
    shape = components[str(ref["$ref"]).rpartition("/")[2]]
    needed: Collection[str] = shape.get("required", ())
    return [_parameter(name, field, required=name in needed) for name, field in shape["properties"].items()]


def _parameter(name: str, field: Shape, *, required: bool) -> Shape:
    schema = {key: value for key, value in field.items() if not (key == "default" and value is None)}
    if "anyOf" in schema:
        [given] = [each for each in schema.pop("anyOf") if each != {"type": "null"}]
        schema |= given
    made: Shape = {"name": name, "in": "query", "schema": schema}
    return {**made, "required": True} if required else made


def _problems(operation: Operation[Any, Any]) -> dict[str, Shape]:
    also = WITH_BODY if operation.method == "POST" else ()
    lost = (404,) if "{id}" in operation.path else ()
    return _refusals(*ALWAYS, *also, *lost, *operation.statuses)


def _refusals(*statuses: int) -> dict[str, Shape]:
    return {
        str(status): {"$ref": f"#/components/responses/{_PROBLEM.format(status)}"} for status in sorted({*statuses})
    }


_PROBLEM: Final = "Problem{}"


def _problem(status: int, schema: Shape) -> Shape:
    return {"description": f"{STATUSES[status]}.", "content": _json(schema)}


def _tidy(shape: Shape) -> Shape:
    """Return a schema whose description is without the margin that it has in the code."""
    return {**shape, "description": cleandoc(shape["description"])} if "description" in shape else shape


_REF: Final = "#/components/schemas/"
_BASE64: Final = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_NO_ZERO: Final = "^[^\\u0000]*$"
_NULL: Final = {"type": "null"}
_EITHER: Final[Mapping[str, Shape]] = {
    name: {"oneOf": [{"required": [one], "properties": {one: {"not": _NULL}, other: _NULL}} for one, other in pairs]}
    for name, pairs in {"ChangeAsked": [("ids", "filter"), ("filter", "ids")]}.items()
}
_CONDITIONS: Final[Mapping[str, Shape]] = {
    **_EITHER,
    "NewJob": {
        "allOf": [
            {"anyOf": [{"not": {"required": ["payload"]}}, {"properties": {"payload_base64": _NULL, "codec": _NULL}}]},
            {"anyOf": [{"properties": {"run_at": _NULL}}, {"properties": {"delay": _NULL}}]},
        ]
    },
    "UniqueKey": {
        "anyOf": [
            {"properties": {"on_conflict": {"not": {"const": "replace"}}}},
            {"properties": {"until": {"const": "claimed"}, "match_payload": {"const": False}}},
        ]
    },
    "HeldKey": {
        "anyOf": [
            {"properties": {"until": {"not": {"const": "time"}}}},
            {"required": ["expires_at"], "properties": {"expires_at": {"not": _NULL}}},
        ]
    },
    "SchedulePut": {"properties": {"job": {"properties": dict.fromkeys((*REFUSED, *ORIGIN_FIELDS), _NULL)}}},
    "TakeKeysAsked": {"properties": {"keys": {"items": {"properties": {"until": {"const": "time"}}}}}},
    "Ack": {"anyOf": [{"not": {"required": ["result"]}}, {"properties": {"result_base64": _NULL, "codec": _NULL}}]},
}
"""What several fields of a request may be together: no type says it."""


def _reached(refs: Collection[Shape], components: Mapping[str, Shape]) -> set[str]:
    """Return the names of the schemas that requests are made of."""
    found: set[str] = set()
    left: list[object] = [*refs]
    while left:
        part = left.pop()
        match part:
            case {"$ref": str(ref)}:
                name = ref.removeprefix(_REF)
                if name not in found:
                    found.add(name)
                    left.append(components[name])
            case dict():
                left += cast("Shape", part).values()
            case list():
                left += cast("list[object]", part)
            case _:
                pass
    return found


def _exact(shape: Shape, field: str = "") -> Shape:
    """Return the schema of something that is sent, in which the texts say which characters they take."""
    if shape.get("contentEncoding") == "base64":
        return {**shape, "pattern": _BASE64}
    if shape.get("type") == "string" and not (_TOLD_BY & shape.keys() or field in ANYTHING):
        return {**shape, "pattern": _NO_ZERO}
    fields: Shape = shape.get("properties", {})
    exact: Shape = {name: _exact_part(part, field) for name, part in shape.items() if name != "properties"}
    return (
        {**exact, "properties": {name: _exact_part(each, name) for name, each in fields.items()}}
        if "properties" in shape
        else exact
    )


def _exact_part(part: object, field: str) -> object:
    if isinstance(part, list):
        return [_exact_part(each, field) for each in cast("list[object]", part)]
    return _exact(cast("Shape", part), field) if isinstance(part, dict) else part


_TOLD_BY: Final = frozenset({"const", "enum", "format", "pattern", "anyOf"})


def _json(schema: Shape) -> Shape:
    return {"application/json": {"schema": schema}}


def _others(schemas: Mapping[type, Shape]) -> dict[str, Shape]:
    """Return the paths that are no operations."""
    health = {"200": {"description": "Yes.", "content": _json(schemas[Health])}}
    not_ready = {"503": {"description": "No.", "content": _json(schemas[Health])}}
    cookie = {"Set-Cookie": {"description": "The cookie of the session.", "schema": {"type": "string"}}}
    login = {"200": {"description": "Logged in.", "headers": cookie, "content": _json(schemas[SessionTold])}}
    logout = {"200": {"description": "Logged out.", "headers": cookie, "content": _json(schemas[Nothing])}}
    body = {"required": True, "content": _json(schemas[LoginAsked])}
    wrong_login = _refusals(400, 401, 403, 404, 408, 413, 415, 421, 422, 429)
    wrong_logout = _refusals(400, 403, 404, 408, 413, 415, 421)
    return {
        LIVE: {"get": _open("live", "Tell whether this process lives", health)},
        READY: {"get": _open("ready", "Tell whether this process can serve", health | not_ready)},
        SESSION: {
            "post": {**_open("login", "Begin the session of a browser", login | wrong_login), "requestBody": body},
            "delete": _open("logout", "End the session of a browser", logout | wrong_logout),
        },
        METRICS: {
            "get": {
                "operationId": "metrics",
                "summary": "Return the numbers of the store, in the text format of Prometheus",
                "description": "Roles: view. Without the store it has those of this process.",
                "tags": ["about"],
                "responses": {
                    "200": {"description": "The numbers.", "content": {TEXT: {"schema": {"type": "string"}}}},
                    **_refusals(400, 401, 403, 421, 429),
                },
            }
        },
        OPENAPI: {
            "get": {
                "operationId": "openapi",
                "summary": "Return this document",
                "tags": ["about"],
                "responses": {
                    "200": {"description": "The document.", "content": _json({"type": "object"})},
                    **_refusals(400, 401, 421, 429),
                },
            }
        },
    }


def _open(name: str, summary: str, responses: Mapping[str, Shape]) -> Shape:
    """Return a way that needs no token."""
    return {"operationId": name, "summary": summary, "tags": ["about"], "security": [], "responses": dict(responses)}
