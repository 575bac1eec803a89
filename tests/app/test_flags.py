from pathlib import Path

import pytest

from windlass import AlreadyRunning, App, InvalidValue, ServerConfig, UnknownKind
from windlass.connect import open_store


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_flags_go_over_the_environment_and_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_CONCURRENCY", "5")
    app = App("memory://", lease=10)

    app.use_flags({"concurrency": "7", "lease": "1m", "threads": None})

    assert app.config.source("lease") == "flag"
    config = app.server_config(ServerConfig(concurrency=3, threads=2))
    assert (config.concurrency, config.threads) == (7, 2)


@pytest.mark.parametrize("flags", [{"lease": "soon"}, {"lees": "3"}, {"concurrency": "-1"}])
def test_a_wrong_flag_is_refused_when_the_settings_are_read(flags: dict[str, object]) -> None:
    app = App("memory://")
    app.use_flags(flags)

    with pytest.raises(InvalidValue):
        _ = app.config


async def test_flags_come_before_the_app_is_opened() -> None:
    async with App("memory://") as app:
        with pytest.raises(AlreadyRunning, match="before the app is opened"):
            app.use_flags({"lease": "1m"})


async def test_a_url_by_flag_goes_over_a_store_that_was_made_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = open_store("memory://")
    monkeypatch.setenv("WINDLASS_URL", "sqlite:///environment.db")
    asked, unasked = App(mine), App(mine)
    asked.use_flags({"url": "sqlite:///flag.db"})

    async with asked, unasked:
        await asked.client.enqueue("email")

        assert unasked.client.store is mine
        assert (asked.url, unasked.url) == ("sqlite:///flag.db", mine)

    assert [path.name for path in Path().glob("*.db")] == ["flag.db"]


def test_a_handler_is_found_by_its_kind_and_by_its_aliases() -> None:
    app = App("memory://")

    @app.job(kind="send", aliases=["sent"])
    def deliver() -> None: ...

    assert app.handler("send") is app.handler("sent") is deliver


def test_a_handler_that_is_not_there_is_told_with_what_was_meant() -> None:
    app = App("memory://")
    app.job(kind="send")(lambda: None)

    with pytest.raises(UnknownKind, match="did you mean 'send'"):
        app.handler("sned")
