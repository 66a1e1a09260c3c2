"""The commands of afape, one file each. They parse, call and print; importing them imports nothing heavy."""

from __future__ import annotations

import typer

from . import check, compare, demo, evaluate, init, reproduce, train

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add every command to the application."""
    for module in (demo, init, check, evaluate, compare, train, reproduce):
        module.register(app)
