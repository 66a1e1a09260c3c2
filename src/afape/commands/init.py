"""``afape init``: draft a problem file from the data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..files.writing import atomic_write
from . import options
from .screen import Screen, UserError, check_writable

__all__ = ["init"]


def init(
    data: options.Data,
    label: Annotated[
        str | None, typer.Option(help="Column to predict; guessed by default.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File to write.", show_default="DATA with .toml")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Draft a problem file from a table, with comments on what to edit.

    Example: afape init records.csv --label died
    """
    screen = Screen(as_json)
    target = out or data.with_suffix(".toml")
    with screen.work() as tell:
        tell("reading the table", 0, 0)
        check_writable(target, option="--out")
        if target.exists() and not force:
            raise UserError(
                f"{str(target)!r} exists already. Choose another file with --out, or overwrite it with --force."
            )
        from ..files.drafting import draft_problem
        from ..files.tables import read_table

        text = draft_problem(read_table(data), label, data.name)
        with atomic_write(target) as draft:
            draft.write_text(text, encoding="utf-8")
    edits = sum("EDIT" in line for line in text.splitlines()) - 1
    screen.say(f"Drafted {target}: {edits} lines are marked EDIT.")
    screen.say(f"Next: edit it, then  afape check {data} --problem {target}")
    screen.json({"command": "init", "problem": str(target), "edits": edits, "text": text})
