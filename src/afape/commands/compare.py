"""afape compare: several policies on the same rows."""

from __future__ import annotations

from typing import Annotated

import typer

from . import options
from .judging import Asked, tell_costs
from .specs import HELP

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="compare")(compare)


def compare(
    data: options.Data,
    problem: options.ProblemPath,
    policy: Annotated[
        list[str], typer.Option("--policy", help=f"{HELP} Repeat it for each policy.", show_default=False)
    ],
    classifier: options.ClassifierSpec = None,
    report: options.Report = None,
    estimators: options.Estimators = None,
    train_share: options.TrainShare = 0.3,
    bootstrap: options.Bootstrap = 0,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    jobs: options.Jobs = 1,
    sensitivity: options.Sensitivity = True,
    as_json: options.AsJson = False,
    allow_pickle: options.AllowPickle = False,
) -> None:
    """Compare several policies on the same rows: differences that hold jointly, and a ranking.

    Example: afape compare records.csv --problem records.toml --policy none --policy all --policy lean=rules.txt --report out.html
    """
    asked = Asked(
        data, problem, tuple(policy), classifier, train_share, estimators, report, bootstrap, confidence, seed, jobs, sensitivity,
        allow_pickle,
    )  # fmt: skip
    tell_costs(asked, as_json)
