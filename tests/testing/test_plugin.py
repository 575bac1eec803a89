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


TRANSACTION = """
import sqlite3
import pytest
from shop import remind

def order(path, name):
    db = sqlite3.connect(path)
    db.execute("create table if not exists orders (name text)")
    db.execute("insert into orders values (?)", (name,))
    return db
"""


def test_the_file_of_the_programs_own_tables_is_named_by_a_fixture(shop: pytest.Pytester) -> None:
    shop.makepyfile(
        TRANSACTION
        + """
@pytest.fixture
def windlass_store(tmp_path):
    return tmp_path / "shop.db"

async def test_the_job_comes_with_the_row(windlass_app, windlass_store):
    db = order(windlass_store, "ada")
    handle = await remind.options(connection=db).enqueue("ada")
    windlass_app.assert_not_enqueued(remind)
    db.commit()
    windlass_app.assert_enqueued(remind, "ada", count=1)
    assert await windlass_app.drain() == 1
    assert await handle.result(0) == "wake up, ada"
    db.close()

def test_the_job_goes_with_the_row(windlass_app_sync, windlass_store):
    db = order(windlass_store, "eve")
    remind.options(connection=db).enqueue_sync("eve")
    db.rollback()
    windlass_app_sync.assert_not_enqueued(remind)
    assert windlass_app_sync.drain() == 0
    db.close()
"""
    )

    run(shop).assert_outcomes(passed=2)
    assert not (shop.path / "jobs.db").exists()


@pytest.mark.parametrize("way", ["marker", "setting"])
def test_a_file_of_the_tests_own_is_named_by_a_word(shop: pytest.Pytester, way: str) -> None:
    if way == "setting":
        shop.makeini(f"{INI}\nwindlass_store = sqlite\n")
    mark = 'pytestmark = pytest.mark.windlass_store("sqlite")\n' if way == "marker" else ""
    shop.makepyfile(
        TRANSACTION
        + mark
        + """
async def test_the_job_comes_with_the_row(windlass_app, tmp_path):
    db = order(tmp_path / "windlass.db", "ada")
    await remind.options(connection=db).enqueue("ada")
    db.commit()
    db.close()
    assert await windlass_app.drain() == 1
    await remind.options(delay=60).enqueue("eve")
    assert await windlass_app.advance(60) == 1
    assert len(windlass_app.jobs(remind, state="succeeded")) == 2

def test_each_test_has_a_file_of_its_own(windlass_app_sync):
    windlass_app_sync.assert_not_enqueued(remind)
"""
    )

    run(shop, "--strict-markers", "--strict-config").assert_outcomes(passed=2)
    assert not (shop.path / "jobs.db").exists()


@pytest.mark.parametrize(
    "store,message",
    [
        ("sqlit", "windlass_store is 'sqlit': it is 'memory', 'sqlite', 'real', a pathlib.Path or a URL"),
        ("real", "so this test uses the store of the app itself: take no fixture"),
        ("redis://localhost/0", "redis:// has no transactions: name a SQLite file, or a database of Postgres"),
    ],
)
def test_a_store_that_cannot_be_one_is_told(shop: pytest.Pytester, store: str, message: str) -> None:
    shop.makeini(f"{INI}\nwindlass_store = {store}\n")
    shop.makepyfile("def test_it(windlass_app):\n    pass\n\ndef test_so(windlass_app_sync):\n    pass\n")

    result = run(shop)

    result.assert_outcomes(errors=2)
    assert message in result.stdout.str()


FORGOTTEN = """
import asyncio
import sys
import pytest

def test_a_forgotten_fixture():
    from shop import remind
    remind.enqueue_sync("ada")

async def test_in_an_event_loop():
    from shop import remind
    await remind.enqueue("ada")

async def test_by_the_client():
    from shop import app
    await app.client.enqueue("default")

async def test_by_code_that_swallows_errors():
    from shop import remind
    try:
        await remind.enqueue("ada")
    except Exception:
        pass

async def test_by_a_server():
    import windlass
    from shop import app
    await windlass.Server(app).start()
"""


def test_a_test_that_forgot_the_fixture_is_refused_before_it_enqueues(shop: pytest.Pytester) -> None:
    shop.makepyfile(FORGOTTEN)

    result = run(shop)

    result.assert_outcomes(failed=5)
    text = result.stdout.str()
    assert "is on its own store here, and not on a store of the test: take the fixture windlass_app" in text
    assert '@pytest.mark.windlass_store("real")' in text
    assert not (shop.path / "jobs.db").exists()


def test_a_test_that_connects_to_the_url_of_the_app_is_refused(shop: pytest.Pytester) -> None:
    shop.makepyfile(
        """
        import windlass
        from shop import app

        async def test_by_its_url():
            async with windlass.connect(app.url) as client:
                await client.enqueue("default")

        def test_without_an_event_loop():
            with windlass.connect_sync(app.url) as client:
                client.enqueue("default")

        def test_by_another_spelling():
            windlass.connect("sqlite:///./jobs.db")

        async def test_beside_the_fixture(windlass_app):
            windlass.connect(app.url)
        """
    )

    result = run(shop)

    result.assert_outcomes(failed=4)
    assert "this URL leads to the own store of" in result.stdout.str()
    assert not (shop.path / "jobs.db").exists()


def test_other_urls_and_the_url_of_the_tests_own_store_are_left_alone(shop: pytest.Pytester) -> None:
    shop.makepyfile(
        """
        import pytest
        import windlass
        from shop import app

        def test_of_another_store():
            windlass.connect("sqlite:///others.db")

        @pytest.mark.windlass_store("sqlite:///jobs.db")
        def test_of_the_store_of_the_test():
            windlass.connect("sqlite:///jobs.db")

        @pytest.mark.windlass_store("real")
        def test_real():
            windlass.connect(app.url)
        """
    )

    run(shop).assert_outcomes(passed=3)


def test_it_is_refused_after_a_test_that_has_the_fixture(shop: pytest.Pytester) -> None:
    shop.makepyfile(
        """
        from shop import remind

        def test_with(windlass_app_sync):
            remind.enqueue_sync("ada")

        def test_without():
            remind.enqueue_sync("ada")
        """
    )

    run(shop).assert_outcomes(passed=1, failed=1)


@pytest.mark.parametrize("way", ["marker", "setting"])
def test_the_apps_own_store_can_be_allowed(shop: pytest.Pytester, way: str) -> None:
    if way == "setting":
        shop.makeini(f"{INI}\nwindlass_store = real\n")
    mark = '@pytest.mark.windlass_store("real")\n' if way == "marker" else ""
    shop.makepyfile(
        f"import pytest\nfrom shop import app, remind\n\n{mark}def test_real():\n"
        '    remind.enqueue_sync("ada")\n    app.close_sync()\n'
    )

    run(shop, "--strict-markers").assert_outcomes(passed=1)
    assert (shop.path / "jobs.db").exists()


def test_an_app_in_memory_and_one_that_is_not_named_are_left_alone(shop: pytest.Pytester) -> None:
    shop.makepyfile(
        test_others="""
        import pytest
        import windlass

        passing = windlass.App("memory://")

        @passing.job
        def nothing() -> None: ...

        @pytest.mark.windlass_app(passing)
        def test_in_memory():
            nothing.enqueue_sync()
            passing.close_sync()

        def test_another(tmp_path):
            other = windlass.App(f"sqlite:///{tmp_path}/other.db")
            other.blocking_client.enqueue("email")
            other.close_sync()
        """
    )

    run(shop).assert_outcomes(passed=2)
