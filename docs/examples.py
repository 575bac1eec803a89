"""Runs the examples of the docs: a pytest plugin, used by `make examples`.

Every block fenced as `python` runs, in the Markdown files and in the docstrings, and there every `>>>` too. The blocks
of one page share their names and run in the order of the page, in an empty folder of their own. `await`, `async for`
and `async with` may stand at the top level, as in `python -m asyncio`. What is not to be run is fenced as `text`.
"""

import ast
import asyncio
import inspect
from contextlib import ExitStack, chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser
from sybil.parsers.rest import DocTestParser

ROOT = Path(__file__).resolve().parent.parent
STACK = "__page__"
RUNNER = "__runner__"


def open_page(namespace: dict[str, Any]) -> None:
    stack = namespace[STACK] = ExitStack()
    stack.enter_context(chdir(stack.enter_context(TemporaryDirectory())))
    namespace[RUNNER] = stack.enter_context(asyncio.Runner())


def close_page(namespace: dict[str, Any]) -> None:
    namespace[STACK].close()


def run_block(example: Example) -> None:
    # As many empty lines above as the page has: an error then names the line of the page.
    above = example.line + example.parsed.line_offset
    source = "\n" * above + example.parsed
    code = compile(source, example.path, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    if code.co_flags & inspect.CO_COROUTINE:
        example.namespace[RUNNER].run(eval(code, example.namespace))
    else:
        exec(code, example.namespace)


blocks = CodeBlockParser(language="python", evaluator=run_block)
pages = Sybil([blocks], path=str(ROOT), patterns=["*.md"], setup=open_page, teardown=close_page)
docstrings = Sybil([blocks, DocTestParser()], path=str(ROOT), patterns=["*.py"], setup=open_page, teardown=close_page)

pytest_collect_file = (pages + docstrings).pytest()
