from pathlib import Path

import pytest

from windlass import App, InvalidValue, Server, ServerConfig
from windlass.stores.memory import MemoryStore
from windlass.system import SystemClock, SystemRng


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "pyproject.toml"


async def test_the_environment_goes_over_the_file_and_the_file_over_the_code(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write_text(
        "[tool.windlass]\nmax_attempts = 5\nlease = '10s'\n[tool.windlass.queue.email]\nmax_attempts = 7\n"
    )
    monkeypatch.setenv("WINDLASS_LEASE", "20")
    app = App("memory://", max_attempts=2, lease=5, priority=7)

    async with app:
        settings = app.client.settings

    assert (settings.of("any").max_attempts, settings.of("email").max_attempts) == (5, 7)
    assert settings.of("email").lease.total_seconds() == 20
    assert settings.default.priority == 7


async def test_the_url_of_the_environment_is_first_of_all(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_URL", f"sqlite:///{project.parent}/other.db")

    async with App("memory://") as app:
        await app.client.enqueue("email", b"")

    assert (project.parent / "other.db").exists()


async def test_a_store_made_by_hand_is_meant(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_URL", f"sqlite:///{project.parent}/other.db")
    store = MemoryStore(clock=SystemClock(), rng=SystemRng())

    async with App(store) as app:
        assert app.client.store is store


def test_a_wrong_value_names_where_it_stands(project: Path) -> None:
    project.write_text("[tool.windlass]\nlease = 'soon'\n")

    with pytest.raises(InvalidValue, match=r"pyproject\.toml.*lease"):
        _ = App("memory://").client


async def test_a_server_reads_the_same_sources(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write_text("[tool.windlass]\nconcurrency = 3\njob_timeout = '1m'\n")
    monkeypatch.setenv("WINDLASS_NAME", "mill")
    app = App("memory://", lease=5)
    app.queue("email", lease=50)

    config = app.server_config(ServerConfig(concurrency=9, shutdown_timeout=1))

    assert (config.concurrency, config.shutdown_timeout.total_seconds()) == (3, 1)
    assert config.job_timeout is not None
    assert config.job_timeout.total_seconds() == 60
    async with app, Server(app) as server:
        assert server.id.startswith("mill#")
        # the app's lease is no setting of the server: it would go over that of the queue
        assert app.client.settings.of("email").lease.total_seconds() == 50


async def test_an_app_that_is_opened_again_reads_them_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = App("memory://")
    async with app:
        pass
    monkeypatch.setenv("WINDLASS_MAX_ATTEMPTS", "9")

    async with app:
        assert app.client.settings.default.max_attempts == 9
    assert not project.exists()
