"""The files by which a connection is encrypted, looked at when no connection could be made."""

import os
import ssl
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final
from urllib.parse import parse_qs, urlsplit

from windlass.core.errors import StoreUnavailable
from windlass.stores.postgres.options import Options

_UNENCRYPTED: Final = ("disable",)
_UNCHECKED: Final = (*_UNENCRYPTED, "allow", "prefer")


def check_files(options: Options) -> None:
    """Raise when a file of certificates or keys, as the URL or the environment names it, is none.

    The driver says neither which one it is nor that this is not the server's fault.
    """
    for names, load in _loads(options.dsn):
        try:
            load()
        except OSError as error:
            raise StoreUnavailable(
                f"{names} for {options.where} cannot be used ({error.strerror or error}): name a file in PEM format, "
                "which this process may read"
            ) from None


def _loads(dsn: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """Return what the driver loads, and how."""
    query = {name: values[-1] for name, values in parse_qs(urlsplit(dsn).query).items()}

    def given(name: str) -> str | None:
        return query.get(name) or os.environ.get(f"PG{name.upper()}")

    mode = given("sslmode") or "prefer"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for name in () if mode in _UNCHECKED else ("sslrootcert", "sslcrl"):
        if file := given(name):
            yield f"?{name}={file}", partial(context.load_verify_locations, file)
    if mode not in _UNENCRYPTED and (certificate := given("sslcert")):
        key = given("sslkey")
        names = f"?sslcert={certificate}" + (f"&sslkey={key}" if key else "")
        yield names, lambda: context.load_cert_chain(certificate, key, lambda: query.get("sslpassword", ""))
