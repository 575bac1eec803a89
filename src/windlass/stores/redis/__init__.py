"""The store on Redis and Valkey."""

from windlass.stores.redis.store import RedisStore

__all__ = ["RedisStore"]
