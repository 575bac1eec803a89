"""What a decoder reads by position."""

import ast
import inspect
from collections.abc import Callable
from typing import Any


def columns_read(decoder: Callable[..., Any]) -> list[str]:
    """Return the names that `decoder` gives to the columns of its row; `_` for those that it passes over."""
    [names] = [
        [name.id for name in each.targets[0].elts if isinstance(name, ast.Name)]
        for each in ast.walk(ast.parse(inspect.getsource(decoder)))
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Tuple)
    ]
    return names
