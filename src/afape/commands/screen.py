"""Output of a command: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment

from ..files.writing import visible

__all__ = ["BAD_INPUT", "DOUBTFUL", "INTERRUPTED", "Screen", "UserError", "check_writable", "extrapolated_cell"]

DOUBTFUL, BAD_INPUT, INTERRUPTED = 1, 2, 130

Tell = Callable[[str, int, int], None]  # step, done, total; total 0 if it is unknown


class UserError(ValueError):
    """A mistake of the user, printed without a traceback."""


class _Terminal(Console):
    """A console on which control characters of names are shown and have no effect."""

    def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
        """Escape the text of everything that is printed; styles and control codes of rich itself are kept."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


class Screen:
    """Output of one run of a command.

    Parameters
    ----------
    as_json : bool
        True if standard output gets JSON and no text.
    """

    def __init__(self, as_json: bool = False) -> None:
        self.as_json = as_json
        self.out = _Terminal(highlight=False, soft_wrap=True)
        self.err = _Terminal(stderr=True, highlight=False, soft_wrap=True)
        self.warnings: list[str] = []

    def say(self, text: str = "", style: str | None = None) -> None:
        """Print a line of text."""
        if not self.as_json:
            self.out.print(text, style=style, markup=False)

    def show(self, renderable: Any) -> None:
        """Print a table or text with styles."""
        if not self.as_json:
            self.out.print(renderable)

    def note(self, text: str) -> None:
        """Print a line on standard error."""
        self.err.print(text, markup=False)

    def json(self, content: dict[str, Any]) -> None:
        """Print the result as JSON, if that was asked for."""
        if self.as_json:
            from ..files.writing import plain_value

            sys.stdout.write(json.dumps(content, indent=1, default=plain_value, allow_nan=False) + "\n")

    @contextmanager
    def work(self, interrupted: str = "Interrupted; nothing was written.") -> Iterator[Tell]:
        """Show a progress bar; end the command with one line and an exit code on bad input and on Ctrl-C."""
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        bar = Progress(*columns, console=self.err, transient=True, disable=not self.err.is_terminal)
        with self._exit_codes(interrupted), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with bar:
                task = bar.add_task("loading", total=None)

                def tell(step: str, done: int, total: int) -> None:
                    bar.update(task, description=step, completed=done, total=total if total > 0 else None)

                yield tell
            from ..files.toml_words import in_file_words
            from ..warnings import AfapeWarning

            messages = [in_file_words(str(w.message)) for w in caught if issubclass(w.category, AfapeWarning)]
            self.warnings = list(dict.fromkeys(messages))
        for text in self.warnings:
            self.note(f"Warning: {text}")

    @contextmanager
    def _exit_codes(self, interrupted: str) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt:
            self.note(interrupted)
            raise typer.Exit(INTERRUPTED) from None
        except (ValueError, TypeError, OSError, RuntimeError, ModuleNotFoundError, KeyError) as error:
            if os.environ.get("AFAPE_TRACEBACK"):
                raise
            self.note(
                f"Error: {error.args[0] if isinstance(error, KeyError) and error.args else error}{_users_line(error)}"
            )
            raise typer.Exit(BAD_INPUT) from error


def _users_line(error: BaseException) -> str:
    """Return the line of the user's own code that raised an error, or nothing if our code did."""
    package = str(Path(__file__).parents[1])
    trace, found = error.__traceback__, ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        foreign = "site-packages" in file or file.startswith((package, sys.base_prefix, "<"))
        found = "" if foreign else f"\n  raised by {type(error).__name__} in {file}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return found


def check_writable(path: Path | None, ending: str | None = None, option: str = "--report") -> None:
    """Refuse an output path that cannot be written, before the work."""
    if path is None:
        return
    folder = path.absolute().parent
    if ending is not None and path.suffix.lower() != ending:
        raise UserError(f"{option} must end in {ending!r}, but is {str(path)!r}.")
    if path.is_dir():
        raise UserError(f"{option} must be a file, but {str(path)!r} is a folder.")
    if not folder.is_dir():
        raise UserError(f"{option} must lie in a folder that exists, but there is no {str(folder)!r}.")
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".afape-"):
            pass
        if path.exists():
            with path.open("ab"):
                pass
    except OSError as error:
        raise UserError(f"{option} {str(path)!r} cannot be written: {error.strerror}.") from error


def extrapolated_cell(line: dict[Any, Any]) -> str:
    """Return the estimate that holds if the models may be extrapolated, or nothing, as text."""
    return "" if line["extrapolated"] != line["extrapolated"] else f"{line['extrapolated']:.4g}"
