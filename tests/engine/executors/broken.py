"""A module that cannot be imported in a child process."""

import multiprocessing

if multiprocessing.parent_process() is not None:
    raise LookupError("this module is not for children")


def work() -> None: ...
