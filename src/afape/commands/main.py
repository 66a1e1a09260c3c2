"""The entry point of the command line."""

from __future__ import annotations

import typer

from .check import check
from .demo import demo
from .evaluate import COMPARE_HELP, EVALUATE_HELP, evaluate
from .init import init
from .reproduce import benchmark, reproduce
from .train import train

__all__ = ["app", "main"]

app = typer.Typer(
    help="What would this active-feature-acquisition agent cost if we deployed it?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(demo)
app.command()(init)
app.command()(check)
app.command("evaluate", help=EVALUATE_HELP)(evaluate)
app.command("compare", help=COMPARE_HELP)(evaluate)
app.command()(train)
app.command()(reproduce)
app.command()(benchmark)


def main() -> None:
    """Run the command ``afape``."""
    app()
