"""`slatedb+s3://` and its kin: jobs in a bucket of object storage, which one process owns."""

from windlass.stores.slatedb.store import SlateStore

__all__ = ["SlateStore"]
