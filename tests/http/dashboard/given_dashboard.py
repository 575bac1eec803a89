"""A dashboard in front of a real store, asked without a server, with a token for each role."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import windlass
from tests.http.asgi import Reply, ask
from tests.http.given_app import LIMITED, secret_of
from tests.http.given_tokens import TokenList, a_token, bearer
from windlass.api.roles import Role
from windlass.client.client import Client
from windlass.http.auth import TokenAuth
from windlass.http.dashboard.app import Dashboard
from windlass.http.sessions import Sessions

VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
PAGE = ("accept", "text/html,*/*")


@dataclass
class Element:
    """An element of a page."""

    name: str
    attributes: dict[str, str]
    children: list["Element | str"] = field(default_factory=list["Element | str"])

    @property
    def text(self) -> str:
        """All that is written in it, with single spaces."""
        parts = [each if isinstance(each, str) else each.text for each in self.children]
        return " ".join(" ".join(parts).split())

    def all(self, name: str | None = None, **attributes: str | None) -> list["Element"]:
        """Return the elements in it with this name and these attributes; `class_` is one of its classes, `_` a dash."""
        found: list[Element] = []
        for each in self.children:
            if isinstance(each, Element):
                if name in (None, each.name) and each.has(attributes):
                    found.append(each)
                found += each.all(name, **attributes)
        return found

    def one(self, name: str | None = None, **attributes: str | None) -> "Element":
        """Return the only such element."""
        [found] = self.all(name, **attributes)
        return found

    def has(self, attributes: dict[str, str | None]) -> bool:
        for name, value in attributes.items():
            if name == "class_":
                if value not in self.attributes.get("class", "").split():
                    return False
            elif value is None:
                if name.replace("_", "-") not in self.attributes:
                    return False
            elif self.attributes.get(name.replace("_", "-")) != value:
                return False
        return True


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(made)
        if tag not in VOID:
            self._open.append(made)

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        assert self._open[-1].name == tag, f"</{tag}> closes <{self._open[-1].name}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)

    def close(self) -> None:
        super().close()
        assert len(self._open) == 1, f"<{self._open[-1].name}> is never closed"


def read(html: bytes) -> Element:
    """Return a page as a tree; one whose elements are not closed in their order is a mistake."""
    reader = _Reader()
    reader.feed(html.decode())
    reader.close()
    return reader.root


class GivenDashboard:
    """A dashboard, and who asks it: by the name of a role, or `limited`, who may do all on the queue `mine`."""

    def __init__(self, client: Client, *, store: str = "memory://") -> None:
        self.client = client
        self.tokens = TokenList(
            *(a_token(secret_of(role), name=role, roles=[role]) for role in Role),
            a_token(secret_of(LIMITED), name=LIMITED, roles=list(Role), queues=["mine"]),
        )
        sessions = Sessions(self.tokens, secure=False, clock=client.clock)
        self.app = Dashboard(client, auth=TokenAuth(self.tokens, sessions), sessions=sessions, store=store)

    async def get(self, path: str, *, who: str | None = Role.ADMIN, root_path: str = "") -> Reply:
        headers = [PAGE] if who is None else [PAGE, bearer(secret_of(who))]
        return await ask(self.app, "GET", path, headers=headers, root_path=root_path)

    async def page(self, path: str, *, who: str = Role.ADMIN) -> Element:
        """Return a page that is there."""
        reply = await self.get(path, who=who)
        assert reply.status == 200, reply.body
        return read(reply.body)

    async def done(self, path: str, json: object, *, who: str = Role.ADMIN) -> Any:  # noqa: ANN401 - the JSON edge
        """Return what a call of the API that is done tells."""
        reply = await ask(self.app, "POST", f"/api/v1{path}", headers=[bearer(secret_of(who))], json=json)
        assert reply.status == 200, reply.body
        return reply.document


@asynccontextmanager
async def a_dashboard(url: str = "memory://", **settings: Any) -> AsyncGenerator[GivenDashboard]:  # noqa: ANN401 - as connect's
    async with windlass.connect(url, **settings) as client:
        given = GivenDashboard(client)
        try:
            yield given
        finally:
            await given.app.close()
