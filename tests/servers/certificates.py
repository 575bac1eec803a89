"""Certificates for servers of tests, made by the program openssl."""

import shutil
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

OPENSSL: Final = shutil.which("openssl")
"""The program, where it is installed."""


class Certificate(NamedTuple):
    """A certificate and its key, each in a file."""

    file: Path
    key: Path


def make_root(folder: Path, name: str) -> Certificate:
    """Make an authority that signs certificates, as files of `folder`."""
    made = _named(folder, name)
    # from 3.13 on Python trusts no authority that does not say what its key is for
    usage = "keyUsage=critical,keyCertSign,cRLSign"
    _openssl("req", "-x509", "-days", "2", "-addext", usage, *_new_key(made, name), "-out", made.file)
    return made


def make_certificate(folder: Path, name: str, root: Certificate, *, days: int = 2) -> Certificate:
    """Make the certificate of the host, or of the user, `name`, signed by `root`; with negative days it is over."""
    made = _named(folder, name)
    request, extensions = folder / f"{name}.csr", folder / f"{name}.ext"
    extensions.write_text(f"subjectAltName = DNS:{name}\nauthorityKeyIdentifier = keyid,issuer\n")
    _openssl("req", *_new_key(made, name), "-out", request)
    signed_by: list[str | Path] = ["-CA", root.file, "-CAkey", root.key, "-CAcreateserial", "-extfile", extensions]
    _openssl("x509", "-req", "-in", request, "-days", str(days), *signed_by, "-out", made.file)
    return made


def _named(folder: Path, name: str) -> Certificate:
    return Certificate(folder / f"{name}.crt", folder / f"{name}.key")


def _new_key(made: Certificate, name: str) -> list[str | Path]:
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    return [*curve, "-keyout", made.key, "-subj", f"/CN={name}"]


def _openssl(*arguments: str | Path) -> None:
    assert OPENSSL is not None
    done = subprocess.run([OPENSSL, *arguments], check=False, capture_output=True, text=True, timeout=60)
    if done.returncode:
        message = f"openssl {arguments[0]} failed: {done.stderr}"
        raise RuntimeError(message)
