"""A store as a file that can be kept in the repository, and a store of such a file."""

import base64
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, cast

from redis import Redis

from tests.each_store import new_url
from tests.postgres.cluster import as_owner, cluster, dsn_of, schema_of
from tests.redis import asking, keys

HERE: Final = Path(__file__).parent
FILES: Final = {
    "sqlite": HERE / "sqlite.gz",
    "postgres": HERE / "postgres.sql.gz",
    "redis": HERE / "redis.json.gz",
    "slatedb+file": HERE / "slatedb.tar.gz",
}
_SCHEMA: Final = "schema_of_the_file"
_PREFIX: Final = "prefix_of_the_file"
_ADDS: Final = {"string": "SET", "hash": "HSET", "list": "RPUSH", "set": "SADD", "zset": "ZADD"}


def read_path(store: str) -> Path:
    """Return the file with what could be read of a store when it was written."""
    return HERE / f"{store.partition('+')[0]}.read.json.gz"


def save(store: str, url: str) -> None:
    """Write the store at `url`, which nobody has open, as a file."""
    FILES[store].write_bytes(gzip.compress(_SAVE[store](url), 9, mtime=0))


@contextmanager
def restored(store: str) -> Generator[str]:
    """Give the URL of a store that is as its file says."""
    content = gzip.decompress(FILES[store].read_bytes())
    if store == "postgres":
        url = cluster().new_schema()
        cluster().run(content.replace(_SCHEMA.encode(), schema_of(url).encode()))
        yield url
        cluster().drop_schema(url)
        return
    with new_url(store) as url:
        _RESTORE[store](url, content)
        yield url


def _save_sqlite(url: str) -> bytes:
    return _path(url).read_bytes()


def _restore_sqlite(url: str, content: bytes) -> None:
    _path(url).write_bytes(content)


def _save_slatedb(url: str) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        archive.add(_path(url), arcname=".", filter=_without_owner)
    return whole.getvalue()


def _without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def _restore_slatedb(url: str, content: bytes) -> None:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        archive.extractall(_path(url), filter="data")


def _path(url: str) -> Path:
    return Path(url.partition("://")[2].partition("?")[0].replace("//", "/"))


def _save_postgres(url: str) -> bytes:
    """Return the schema and the rows as SQL that every version understands."""
    program = shutil.which("pg_dump", path=f"{cluster().programs}:{os.environ['PATH']}")
    assert program is not None
    words = [
        "--inserts",
        "--exclude-table=*.kept_*",
        "--no-owner",
        "--no-privileges",
        f"--schema={schema_of(url)}",
        dsn_of(as_owner(url)),
    ]
    text = subprocess.run([program, *words], capture_output=True, text=True, check=True).stdout
    unwanted = re.compile(r"--|\\|SET |SELECT pg_catalog.set_config|CREATE SCHEMA |$")
    lines = [line for line in text.splitlines() if not unwanted.match(line)]
    return "\n".join([*lines, ""]).replace(schema_of(url), _SCHEMA).encode()


def _save_redis(url: str) -> bytes:
    """Return each key with its type, the milliseconds that it is kept for, and what is in it."""
    found: list[dict[str, Any]] = []
    with closing(_connected(url)) as client:
        for name in sorted(keys.keys_of(url)):
            key = name.encode(errors="surrogateescape")
            kind = client.type(key).decode()
            content = _content(client, kind, key)
            named = name.replace(keys.prefix_of(url), _PREFIX)
            found.append({"key": named, "type": kind, "ttl": client.pttl(key), "content": list(map(_text, content))})
    return json.dumps(found, indent=1).encode()


def _content(client: Any, kind: str, key: bytes) -> list[bytes]:  # noqa: ANN401 - the driver's types are of no help
    match kind:
        case "string":
            return [client.get(key)]
        case "hash":
            return [part for pair in sorted(client.hgetall(key).items()) for part in pair]
        case "list":
            return cast("list[bytes]", client.lrange(key, 0, -1))
        case "set":
            return sorted(client.smembers(key))
        case _:
            pairs = client.zrange(key, 0, -1, withscores=True)
            return [part for member, score in pairs for part in (repr(score).encode(), member)]


def _restore_redis(url: str, content: bytes) -> None:
    with closing(_connected(url)) as client:
        for each in json.loads(content):
            key = each["key"].replace(_PREFIX, keys.prefix_of(url)).encode()
            client.execute_command(_ADDS[each["type"]], key, *map(base64.b64decode, each["content"]))
            if each["ttl"] > 0:
                client.pexpire(key, each["ttl"])


def _connected(url: str) -> Any:  # noqa: ANN401 - the driver's types are of no help here
    driver: Any = Redis
    return driver.from_url(asking.dsn_of(url), protocol=2)


def _text(part: bytes) -> str:
    return base64.b64encode(part).decode()


_SAVE: Final = {
    "sqlite": _save_sqlite,
    "postgres": _save_postgres,
    "redis": _save_redis,
    "slatedb+file": _save_slatedb,
}
_RESTORE: Final = {"sqlite": _restore_sqlite, "redis": _restore_redis, "slatedb+file": _restore_slatedb}
