"""What a program talks to a store with."""

from windlass.client.client import Client

__all__ = ["Client"]
