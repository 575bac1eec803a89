import subprocess
import sys

import pytest

import windlass
from windlass.core import errors

LOADS_LITTLE = """
import sys
import windlass
heavy = {"asyncio", "msgspec", "sqlite3", "sqlalchemy", "windlass.client", "windlass.stores"} & set(sys.modules)
sys.exit(f"loaded {heavy}" if heavy else 0)
"""
MODULE_FIRST = """
import windlass.connect
from windlass.connect import open_store
windlass.connect("memory://")
windlass.connect_sync("memory://")
"""
NO_STORE_BUT_ITS_OWN = """
import sys
import windlass
windlass.connect("memory://")
sys.exit("loaded sqlite" if "windlass.stores.sqlite" in sys.modules or "sqlalchemy" in sys.modules else 0)
"""


def test_every_public_name_can_be_loaded() -> None:
    for name in windlass.__all__:
        assert getattr(windlass, name) is not None


def test_every_error_is_public() -> None:
    tree = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}

    assert tree <= set(windlass.__all__)


def test_each_outcome_of_a_cancel_is_a_name_of_the_package() -> None:
    assert [getattr(windlass, outcome.name) for outcome in windlass.CancelOutcome] == list(windlass.CancelOutcome)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'conect'"):
        getattr(windlass, "conect")  # noqa: B009 - a type checker knows that it is not there


@pytest.mark.parametrize("program", [LOADS_LITTLE, MODULE_FIRST, NO_STORE_BUT_ITS_OWN])
def test_importing_loads_only_what_is_used(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
