"""afape evaluate: what one policy would cost."""

from __future__ import annotations

from typing import Annotated

import typer

from . import options
from .judging import Asked, tell_costs
from .specs import HELP

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="evaluate")(evaluate)


def evaluate(
    data: options.Data,
    problem: options.ProblemPath,
    policy: Annotated[str, typer.Option("--policy", help=HELP, show_default=False)],
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
    """Estimate what a policy would cost if it were deployed.

    Example: afape evaluate records.csv --problem records.toml --policy fixed:cbc,lactate --report out.html
    """
    asked = Asked(
        data, problem, (policy,), classifier, train_share, estimators, report, bootstrap, confidence, seed, jobs, sensitivity,
        allow_pickle,
    )  # fmt: skip
    tell_costs(asked, as_json)
