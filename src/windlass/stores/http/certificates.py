"""Whom an encrypted connection trusts, and as whom it shows itself."""

import ssl
from functools import lru_cache
from pathlib import Path

from windlass.core.errors import StoreUnavailable
from windlass.stores.http.options import Options


def context_of(options: Options) -> ssl.SSLContext | None:
    """Return how a connection is encrypted, None for one that is not; raises when a file cannot be used."""
    if not options.tls:
        return None
    named = (options.tls_ca, options.tls_cert, options.tls_key)
    try:
        # files that were renewed since are read again
        stamps = tuple(Path(file).stat().st_mtime_ns for file in named if file is not None)
        return _context(*named, stamps)
    except OSError as error:
        names = zip(("tls_ca", "tls_cert", "tls_key"), named, strict=True)
        given = "&".join(f"{name}={file}" for name, file in names if file is not None)
        raise StoreUnavailable(
            f"a file of ?{given} for {options.where} cannot be used ({error}): name files in PEM format, which this "
            "process may read, and a key without a passphrase"
        ) from error


@lru_cache(maxsize=8)
def _context(ca: str | None, cert: str | None, key: str | None, _: tuple[int, ...]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca)
    if cert is not None:
        # a key with a passphrase would be asked for at the terminal, in the middle of an event loop
        context.load_cert_chain(cert, key, password=lambda: "")
    return context
