import pytest

from windlass import App, Server, ServerConfig


@pytest.mark.parametrize("processes, told", [(1, 0), (2, 1)])
async def test_a_server_in_a_program_tells_that_it_is_one_process(
    processes: int, told: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with App("memory://") as app, Server(app, ServerConfig(processes=processes)):
        pass

    lines = [record.getMessage() for record in caplog.records if "has an effect under" in record.getMessage()]
    assert len(lines) == told
    assert all("processes=2 has an effect under `windlass worker` alone" in line for line in lines)
