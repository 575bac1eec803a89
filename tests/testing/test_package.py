import subprocess
import sys

import pytest

import windlass.testing
from windlass.testing import SteadyRng

LOADS_LITTLE = """
import sys
import windlass.testing
heavy = {"asyncio", "msgspec", "sqlite3", "windlass.app", "windlass.client", "windlass.stores"} & set(sys.modules)
sys.exit(f"loaded {heavy}" if heavy else 0)
"""


def test_every_public_name_can_be_loaded_and_is_listed() -> None:
    for name in windlass.testing.__all__:
        assert getattr(windlass.testing, name) is not None
        assert name in dir(windlass.testing)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'in_memroy'"):
        getattr(windlass.testing, "in_memroy")  # noqa: B009 - a type checker knows that it is not there


def test_importing_it_loads_little() -> None:
    done = subprocess.run([sys.executable, "-c", LOADS_LITTLE], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_steady_chance_takes_the_middle_and_makes_different_tokens() -> None:
    rng = SteadyRng()

    assert rng.random() == rng.random() == 0.5
    assert rng.token_bytes(16) != rng.token_bytes(16)
