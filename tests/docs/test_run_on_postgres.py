from pathlib import Path

from tests.docs.pages import text_of
from tests.docs.test_ten_minutes import project_name
from tests.docs.walk import Step, Walk, steps
from tests.postgres.private import DURABLE, PrivateCluster

PAGE = text_of("howto/run-on-postgres.md")


def test_the_first_start_on_postgres_goes_as_the_page_says(tmp_path: Path) -> None:
    install, *rest = steps(PAGE)

    assert install == Step("text", f"pip install '{project_name()}[postgres]'\n")
    with PrivateCluster(conf=DURABLE) as server, Walk(tmp_path) as walk:
        [(version,)] = server.as_cluster().run("show server_version")
        login = server.url.removeprefix("postgres://").replace("postgres@", "postgres:secret@")
        here = (
            ("shop:secret@db/shop", login),
            ("shop:***@db/shop", login.replace("secret", "***")),
            ("Postgres 18.6", f"Postgres {version}"),
        )
        for what, text in rest:
            for on_page, real in here:
                text = text.replace(on_page, real)  # noqa: PLW2901 - the same text, as it is here
            walk.follow(Step(what, text))
