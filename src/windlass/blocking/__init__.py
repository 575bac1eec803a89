"""The client for programs without an event loop."""

from windlass.blocking.client import BlockingClient

__all__ = ["BlockingClient"]
