"""Where the objects of a database lie: in a bucket, in a folder, or in this process."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from slatedb.uniffi import ObjectStore, ObjectStoreBuilder, ObjectStoreType

from windlass.core.errors import SchemaMissing, StoreUnavailable
from windlass.stores.slatedb.address import Address
from windlass.stores.slatedb.faults import no_database

LEAST_REQUEST: Final = 30.0
"""Seconds that one request may take at least, however soon a call is given up: a large object has to get through.

One that does not is repeated, and all that is written later waits behind it: so it is no longer than it must be, for
where a line goes dead without a word, nothing is written until then."""
_REACH: Final = 3.0
_named: Final[dict[str, ObjectStore]] = {}
_guard: Final = threading.Lock()


def objects_of(address: Address) -> ObjectStore:
    """Return the objects at `address`; those in memory live as long as this process.

    The folder of a file database is made where that is allowed, and `SchemaMissing` is raised where it is not.
    """
    match address.kind:
        case "memory":
            with _guard:
                return _named.get(address.bucket) or _named.setdefault(address.bucket, _in_memory())
        case "file":
            return _in_folder(address)
        case _:
            return _in_bucket(address)


def _in_memory() -> ObjectStore:
    return ObjectStoreBuilder(ObjectStoreType.IN_MEMORY).build()


def _in_folder(address: Address) -> ObjectStore:
    folder = Path(address.path)
    try:
        if address.create:
            folder.mkdir(parents=True, exist_ok=True)
        elif not folder.exists():
            raise no_database(address)
        # the engine tells of neither of them, and waits
        if not (folder.is_dir() and os.access(folder, os.R_OK | os.X_OK | (0 if address.look else os.W_OK))):
            message = f"{address.where} is no folder that this process may use: check its path and its owner"
            raise StoreUnavailable(message)
    except SchemaMissing:
        raise
    except OSError as error:
        message = f"the folder of {address.where} could not be made: {error.strerror}: check its path and its owner"
        raise StoreUnavailable(message) from error
    builder = ObjectStoreBuilder(ObjectStoreType.LOCAL)
    builder.with_config("local_path", str(folder))
    return builder.build()


def _in_bucket(address: Address) -> ObjectStore:
    kinds = {"s3": ObjectStoreType.S3, "gs": ObjectStoreType.GCS, "az": ObjectStoreType.AZURE}
    builder = ObjectStoreBuilder.from_env(kinds[address.kind])
    for name, value in _config(address):
        builder.with_config(name, value)
    return builder.build()


def _config(address: Address) -> Iterator[tuple[str, str]]:
    yield "container_name" if address.kind == "az" else "bucket", address.bucket
    if address.endpoint is not None:
        yield "endpoint", address.endpoint
        yield "allow_http", "true" if address.endpoint.startswith("http://") else "false"
    if address.region is not None:
        yield "region", address.region
    yield "timeout", f"{longest_request(address):g}s"
    yield "connect_timeout", f"{_REACH:g}s"


def longest_request(address: Address) -> float:
    """Return after how many seconds one request is given up, and made again."""
    return max(address.timeout, LEAST_REQUEST)
