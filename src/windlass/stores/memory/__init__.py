"""`memory://`: the model that every other store is compared with. It lives with its process."""

from windlass.stores.memory.store import MemoryStore

__all__ = ["MemoryStore"]
