import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PROJECT = Path(__file__).resolve().parent.parent.parent / "pyproject.toml"
SHOP = """
from collections.abc import AsyncIterator
from windlass import App, Context, given

app = App("sqlite:///jobs.db")
no_app = object()
opened = []


class Pool:
    closed = False


@app.lifespan
async def pool() -> AsyncIterator[Pool]:
    mine = Pool()
    opened.append(mine)
    yield mine
    mine.closed = True


@app.job
async def remind(name: str, *, pool: Pool = given()) -> str:
    return f"wake up, {name}"


@app.job(max_attempts=2)
def resize(path: str, ctx: Context) -> int:
    if ctx.attempt == 1:
        raise OSError
    return ctx.attempt
"""
INI = """
[pytest]
windlass_app = shop:app
pythonpath = .
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
"""
HEAVY = """
import sys
import windlass.testing.plugin
heavy = {"asyncio", "msgspec", "sqlite3", "windlass.app", "windlass.client", "windlass.stores"} & set(sys.modules)
sys.exit(f"loaded {heavy}" if heavy else 0)
"""


@pytest.fixture
def shop(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    # whether it is installed or not: only the plugins that are named here
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p windlass.testing.plugin -p pytest_asyncio.plugin -p no:cacheprovider")
    pytester.makepyfile(shop=SHOP)
    pytester.makeini(INI)
    return pytester


def run(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess("-W", "error", *args)


def test_the_package_names_the_plugin_to_pytest() -> None:
    named = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["entry-points"]["pytest11"]

    assert str(import_module(named["windlass"]).__doc__).startswith("The pytest plugin of Windlass")


def test_loading_it_loads_nothing_heavy() -> None:
    # pytest itself is there before its plugins
    program = HEAVY.replace("import windlass", "import pytest; before = set(sys.modules)\nimport windlass")
    program = program.replace("& set(sys.modules)", "& (set(sys.modules) - before)")

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_an_async_test_gets_its_app_in_memory(shop: pytest.Pytester) -> None:
    shop.makepyfile(
        """
        from shop import remind

        async def test_a_reminder_comes_after_a_day(windlass_app, windlass_clock):
            handle = await remind.options(delay=86_400).enqueue("ada")
            windlass_app.assert_enqueued(remind, "ada")
            assert windlass_app.clock is windlass_clock

            await windlass_app.advance(86_400)

            assert await handle.result(0) == "wake up, ada"

        async def test_each_test_has_a_store_of_its_own(windlass_app):
            windlass_app.assert_not_enqueued(remind)
        """
    )

    run(shop).assert_outcomes(passed=2)
    assert not (shop.path / "jobs.db").exists()


def test_what_handlers_needed_is_closed_after_the_test(shop: pytest.Pytester) -> None:
    shop.makepyfile(
        """
        import pytest
        import shop

        @pytest.mark.parametrize("number", [1, 2])
        async def test_use(windlass_app, number):
            assert all(pool.closed for pool in shop.opened)
            await shop.remind.enqueue("ada")
            await windlass_app.drain()
            assert len(shop.opened) == number
            assert not shop.opened[-1].closed

        def test_closed():
            assert [pool.closed for pool in shop.opened] == [True, True]
        """
    )

    run(shop).assert_outcomes(passed=3)


def test_so_it_is_in_an_event_loop_for_all_tests(shop: pytest.Pytester) -> None:
    shop.makepyfile(
        """
        import pytest
        import shop

        pytestmark = pytest.mark.asyncio(loop_scope="module")

        @pytest.mark.parametrize("number", [1, 2])
        async def test_use(windlass_app, number):
            assert all(pool.closed for pool in shop.opened)
            await shop.remind.enqueue("ada")
            assert await windlass_app.drain() == 1
            async with windlass_app.server():
                handle = await shop.remind.enqueue("eve")
                await handle.result()
        """
    )

    run(shop).assert_outcomes(passed=2)


def test_a_test_without_an_event_loop_has_its_own_form(shop: pytest.Pytester) -> None:
    shop.makepyfile(
        """
        from shop import resize

        def test_resize(windlass_app_sync):
            handle = resize.enqueue_sync("cat.png")

            windlass_app_sync.drain(advance=True)

            assert handle.result(0) == 2
        """
    )

    run(shop).assert_outcomes(passed=1)


def test_a_marker_names_another_app(shop: pytest.Pytester) -> None:
    shop.makepyfile(
        other="import windlass\n\napp = windlass.App('memory://', name='other')\n",
        test_other="""
        import pytest
        from shop import app

        @pytest.mark.windlass_app("other:app")
        def test_by_name(windlass_app_sync):
            assert windlass_app_sync.app.name == "other"

        @pytest.mark.windlass_app(app)
        def test_as_it_is(windlass_app_sync):
            assert windlass_app_sync.app is app
        """,
    )

    run(shop, "--strict-markers").assert_outcomes(passed=2)


@pytest.mark.parametrize(
    "ini,message",
    [
        ("", 'which app is it? Set windlass_app = "module:app" under'),
        ("windlass_app = shop", "the setting windlass_app of pytest is 'shop': write module:app"),
        ("windlass_app = no_such:app", "which is not there (No module named 'no_such')"),
        ("windlass_app = shop:nothing", "which is not there (module 'shop' has no attribute 'nothing')"),
        ("windlass_app = shop:no_app", "which is no windlass.App"),
    ],
)
def test_an_app_that_cannot_be_found_is_told(shop: pytest.Pytester, ini: str, message: str) -> None:
    shop.makeini(INI.replace("windlass_app = shop:app", ini))
    shop.makepyfile("def test_it(windlass_app):\n    pass\n")

    result = run(shop)

    result.assert_outcomes(errors=1)
    assert message in result.stdout.str()


def test_runs_that_do_not_use_it_are_as_before(shop: pytest.Pytester) -> None:
    shop.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    shop.makepyfile("import sys\n\ndef test_it():\n    assert 'windlass.app' not in sys.modules\n")

    run(shop, "--strict-config", "--strict-markers").assert_outcomes(passed=1)
