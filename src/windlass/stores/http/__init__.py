"""Any store behind `windlass serve`, over HTTP."""

from windlass.stores.http.store import HttpStore

__all__ = ["HttpStore"]
