"""All ways into a dashboard, as its router has them."""

from typing import NamedTuple

from tests.http.asgi import ask
from tests.http.dashboard.given_dashboard import GivenDashboard
from tests.http.given_app import secret_of
from tests.http.test_table_of_routes import ID
from windlass.api.roles import Role
from windlass.http.routing import OnlyRoute

QUERIES = {
    "minutes": "since=2026-01-01T00:00:00Z&until=2027-01-01T00:00:00Z",
    "timings": "since=2026-01-01T00:00:00Z&until=2027-01-01T00:00:00Z",
    "wait": "timeout=0",
    "news": "topic=ends",
}
"""What is asked where something must be."""
UNSAFE = ("POST", "PUT", "PATCH", "DELETE")


class EveryWay(NamedTuple):
    method: str
    path: str
    name: str

    def target(self, job: str = ID) -> str:
        """The path with all that it needs."""
        path = self.path.replace("{id:uuid}", job)
        return f"{path}?{QUERIES[self.name]}" if self.name in QUERIES else path

    @property
    def streams(self) -> bool:
        """Whether the reply goes on until somebody hangs up."""
        return self.path.startswith("/live") or self.name in ("news", "log")


def ways_of(given: GivenDashboard) -> list[EveryWay]:
    """Return all ways, those of the API too."""
    routes = [route for route in given.app.api.router.routes if isinstance(route, OnlyRoute)]
    assert len(routes) == len(given.app.api.router.routes)
    return [EveryWay(method, route.path, route.name) for route in routes for method in sorted(route.methods or ())]


async def logged_in(given: GivenDashboard, who: str = Role.ADMIN) -> str:
    """Return the cookie of a browser after its login."""
    reply = await ask(given.app, "POST", "/api/v1/session", json={"token": secret_of(who)})
    assert reply.status == 200, reply.body
    return (reply.header("set-cookie") or "").partition(";")[0]
