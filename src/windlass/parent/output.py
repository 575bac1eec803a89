"""What a process has printed, when it comes to its end."""

import os
import sys
from contextlib import suppress


def let_go_of_output() -> None:
    """Write what was printed; where nobody takes it, let it go, or the interpreter would end with a code of its own."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        except AttributeError:
            # the process was started without it
            continue
