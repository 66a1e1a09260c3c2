"""Arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "AllowPickle",
    "AsJson",
    "Bootstrap",
    "ClassifierSpec",
    "Confidence",
    "Data",
    "Estimators",
    "Jobs",
    "ProblemPath",
    "Report",
    "Seed",
    "Sensitivity",
    "TrainShare",
]

Data = Annotated[Path, typer.Argument(help="Table of records: .csv, .tsv or .parquet.", show_default=False)]
ProblemPath = Annotated[
    Path, typer.Option("--problem", "-p", help="Problem file (TOML); `afape init` drafts one.", show_default=False)
]
ClassifierSpec = Annotated[
    str | None,
    typer.Option(
        "--classifier",
        help="What predicts when the agent stops: a saved classifier (.afape), module:object, or forest, logistic or boosting, "
        "which are trained on held-out rows. Default: forest.",
        show_default=False,
    ),
]
TrainShare = Annotated[
    float,
    typer.Option(
        "--train-share", min=0.05, max=0.95, help="Share of the rows that train the classifier, if none is given."
    ),
]
Estimators = Annotated[
    str | None,
    typer.Option(
        "--estimators",
        help="Names, separated by commas, or 'all', which adds mi (and eff-semi on large data).",
        show_default=False,
    ),
]
Report = Annotated[
    Path | None, typer.Option("--report", "-r", help="Write a page that stands alone, .html.", show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of splits, folds and everything drawn.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes.")]
Bootstrap = Annotated[int, typer.Option("--bootstrap", min=0, help="Replicates of the refitting bootstrap.")]
Confidence = Annotated[float, typer.Option("--confidence", min=0.5, max=0.9999, help="Level of the intervals.")]
Sensitivity = Annotated[
    bool, typer.Option("--sensitivity/--no-sensitivity", help="Ask how strong an unmeasured reason would have to be.")
]
AllowPickle = Annotated[
    bool,
    typer.Option("--allow-pickle", help="Load pickled agents too. A pickle can run any code: only if you trust it."),
]
