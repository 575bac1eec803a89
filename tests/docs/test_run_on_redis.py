from pathlib import Path

from tests.docs.pages import text_of
from tests.docs.test_ten_minutes import project_name
from tests.docs.walk import Step, Walk, steps
from tests.redis.private import DURABLE, PrivateRedis

PAGE = text_of("howto/run-on-redis.md")


def test_the_first_start_on_redis_goes_as_the_page_says(tmp_path: Path) -> None:
    install, *rest = steps(PAGE)

    assert install == Step("text", f"pip install '{project_name()}[redis]'\n")
    with PrivateRedis(conf=DURABLE, users={"windlass": "on >secret ~* &* +@all"}) as server, Walk(tmp_path) as walk:
        place, told = f"127.0.0.1:{server.port}", server.ask("INFO", "server")
        version = told.get("valkey_version")
        here = (
            ("windlass:secret@db/0", f"windlass:secret@{place}/0"),
            ("windlass:***@db/0", f"windlass:***@{place}/0"),
            ("db:6379", place),
            ("Valkey 9.1.2", f"Valkey {version}" if version else f"Redis {told['redis_version']}"),
        )
        for what, text in rest:
            for on_page, real in here:
                text = text.replace(on_page, real)  # noqa: PLW2901 - the same text, as it is here
            walk.follow(Step(what, text))
