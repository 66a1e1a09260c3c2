"""Progress of long work: a bar in notebooks and terminals, or a function of the user."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ._arguments import check_takes

__all__ = ["Progress", "check_progress", "in_notebook", "reporter"]

Progress = Callable[[int, int], None]  # progress(steps done, steps in total)

_WAIT, _PAUSE = 2.0, 0.2  # seconds before a bar appears, and between two updates


def check_progress(progress: Any) -> None:
    """Raise an error if this is not a valid ``progress`` argument."""
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise TypeError(
            "'progress' must be a function of steps done and steps in total, True, False or None, but is "
            f"{type(progress).__name__}."
        )
    if callable(progress):
        check_takes("progress", progress, "done, total")


def in_notebook() -> bool:
    """Return True if the code runs in a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")


@contextmanager
def reporter(progress: Progress | bool | None) -> Iterator[Progress | None]:
    """Give the function to which steps are reported: the user's function, a bar, or None.

    True shows a bar at once. None shows a bar only in notebooks, after two seconds.
    """
    check_progress(progress)
    if callable(progress):
        yield progress
    elif in_notebook() and progress is not False:
        bar = _NotebookBar(0.0 if progress else _WAIT)
        try:
            yield bar
        finally:
            bar.close()
    elif progress is True:
        with _terminal_bar() as bar_:
            yield bar_
    else:
        yield None


class _NotebookBar:
    """A bar as HTML, updated in place."""

    def __init__(self, wait: float) -> None:
        self.start, self.next, self.handle = time.monotonic(), time.monotonic() + wait, None

    def __call__(self, done: int, todo: int) -> None:
        """Show the progress."""
        now = time.monotonic()
        if now < self.next:
            return
        self.next = now + _PAUSE
        self._show(bar_html(done, todo, now - self.start))

    def _show(self, html: str) -> None:
        from IPython.display import HTML, display  # type: ignore[import-not-found]

        if self.handle is None:
            self.handle = display(HTML(html), display_id=True)
        else:
            self.handle.update(HTML(html))

    def close(self) -> None:
        """Remove it."""
        if self.handle is not None:
            self._show("")


def bar_html(done: int, todo: int, seconds: float) -> str:
    """Return a bar with the remaining time, at the speed so far."""
    share = min(done / todo, 1.0) if todo else 0.0
    left = f", about {seconds * (1 - share) / share:.0f} s left" if 0 < share < 1 else ""
    return f'<progress value="{share:.4f}" max="1" aria-label="progress"></progress> {100 * share:.0f} %{left}'


@contextmanager
def _terminal_bar() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("evaluating", total=None)
        yield lambda done, todo: bar.update(task, completed=done, total=todo)
