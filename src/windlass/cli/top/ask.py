"""A question before something is changed, and the page of keys."""

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from windlass.core.escaped import escaped

KEYS: Final = """\
tab, 1 2 3 4   go to another table
up, down       go to another row
enter          of a job, its page with reasons and log;
               of a queue or an error, its jobs
/              list only some jobs, as in
               queue:email state:dead kind:send error:time
escape         list all again
p              pause the queue, or resume it
r              retry the job, or all jobs of the error
c              cancel the job
d              delete the job, or all jobs of the error
?              these keys
q              leave

What changes something asks first, and is audited."""


class Ask(ModalScreen[bool]):
    """Asks whether something is to be done."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "yes"),
        Binding("n,escape,q", "answer(False)", "no"),
    ]
    DEFAULT_CSS = """
    Ask { align: center middle; }
    Ask > Vertical { width: auto; max-width: 90%; height: auto; padding: 1 2; }
    Ask > Vertical { border: round $warning; background: $surface; }
    Ask Static { width: auto; max-width: 100%; }
    """

    def __init__(self, question: str) -> None:
        """Ask `question`, which may hold what somebody else wrote."""
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """Show the question."""
        with Vertical():
            yield Static(f"{escaped(self._question)}\n\ny: yes    n: no", markup=False)

    def action_answer(self, answer: bool) -> None:  # noqa: FBT001 - called by its binding
        """Go back with the answer."""
        self.dismiss(answer)


class Keys(ModalScreen[None]):
    """Shows what each key does."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,enter,space", "leave", "back")]
    DEFAULT_CSS = """
    Keys { align: center middle; }
    Keys > Vertical { width: auto; max-width: 96%; height: auto; max-height: 96%; padding: 0 2; }
    Keys > Vertical { border: round $primary; background: $surface; }
    Keys Static { width: auto; max-width: 100%; }
    """

    def compose(self) -> ComposeResult:
        """Show the keys."""
        with Vertical():
            yield Static(KEYS, markup=False)

    def action_leave(self) -> None:
        """Go back."""
        self.dismiss(None)
