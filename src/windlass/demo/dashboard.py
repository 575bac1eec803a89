"""The dashboard of the demo's store: served from the beginning to the end, for whoever wants to watch in a browser."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import windlass
from windlass.api.roles import Role
from windlass.demo.view import View

HOST: Final = "127.0.0.1"
NEEDS_MORE: Final = "To watch it in a browser: pip install 'windlass[web]'."


@asynccontextmanager
async def shown_in_browser(url: str, view: View) -> AsyncGenerator[str | None]:
    """Serve the dashboard on a free port of the loopback for the time of a block; give its address.

    None where it cannot be served, which the view is told: the story goes on without. Browsers may look and change
    nothing, since the checker could not tell their changes from a promise that was broken.
    """
    async with AsyncExitStack() as stack:
        address = None
        try:
            address = await _serve(url, stack)
            view.say(f"Watch it in a browser: {address}")
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] == "windlass":
                raise
            view.say(NEEDS_MORE)
        except OSError as error:
            view.say(f"No dashboard: {error}.")
        yield address


async def _serve(url: str, stack: AsyncExitStack) -> str:
    # these need packages that not everybody has
    from windlass.http.auth import Identity, NoAuth  # noqa: PLC0415
    from windlass.http.dashboard.app import Dashboard  # noqa: PLC0415
    from windlass.http.listening import Listening  # noqa: PLC0415

    client = await stack.enter_async_context(windlass.connect(url))
    auth = NoAuth(Identity("looking only", frozenset({Role.VIEW})))
    dashboard = Dashboard(client, auth=auth, store="the store of the demo")
    stack.push_async_callback(dashboard.close)
    listening = Listening(dashboard, HOST, 0, stopping=dashboard.stop_waiting)
    stack.push_async_callback(listening.stop, grace=0.5)
    await listening.start()
    return f"http://{HOST}:{listening.port}/"
