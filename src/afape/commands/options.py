"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "MIN_CELL",
    "AllowPickle",
    "AsJson",
    "BlockRows",
    "Bootstrap",
    "ClassifierSpec",
    "Confidence",
    "Data",
    "Decide",
    "Estimators",
    "Jobs",
    "MinCell",
    "ProblemPath",
    "Report",
    "Scratch",
    "Seed",
    "Sensitivity",
    "Tables",
    "TrainShare",
]

Data = Annotated[Path, typer.Argument(help="Table of records: .csv, .tsv or .parquet.", show_default=False)]
Tables = Annotated[
    Path,
    typer.Argument(
        help="Table of records: .csv, .tsv or .parquet. A folder, or a pattern in quotes such as 'records/*.parquet', is "
        "evaluated in blocks, so the rows may be more than memory holds.",
        show_default=False,
    ),
]
BlockRows = Annotated[
    int | None,
    typer.Option(
        "--block-rows",
        min=1,
        help="Rows of a block, about, if DATA is a folder or pattern.",
        show_default="100,000 at most",
    ),
]
Scratch = Annotated[
    Path | None,
    typer.Option(
        "--scratch",
        help="Folder for blocks and for what is finished of them, if DATA is a folder or pattern. The same command continues an "
        "interrupted run in it. Default: a temporary folder.",
        show_default=False,
    ),
]
ProblemPath = Annotated[
    Path, typer.Option("--problem", "-p", help="Problem file (TOML); `afape init` drafts one.", show_default=False)
]
ClassifierSpec = Annotated[
    str | None,
    typer.Option(
        "--classifier",
        help="Predicts the label when the agent stops: a saved classifier (.afape), module:object, or forest, logistic or "
        "boosting, which are trained on held-out rows. Default: best, the one of these three whose errors cost least.",
        show_default=False,
    ),
]
Decide = Annotated[
    str | None,
    typer.Option(
        "--decide",
        help="A classifier that is trained here predicts the most likely label (label) or the label of least expected cost "
        "(cost). Default: cost if errors have different costs, else label.",
        show_default=False,
    ),
]
TrainShare = Annotated[
    float,
    typer.Option(
        "--train-share",
        min=0.05,
        max=0.95,
        help="Share of the rows that train the classifier; not used with a trained --classifier.",
    ),
]
Estimators = Annotated[
    str | None,
    typer.Option(
        "--estimators",
        help="Names, separated by commas, or 'all'. Default: all but multiple imputation and, on large data, the "
        "efficient estimator. If the problem file has a graph or 'adjust', the default is all that it allows.",
        show_default=False,
    ),
]
Report = Annotated[
    Path | None,
    typer.Option("--report", "-r", help="Write an HTML report, one file that needs no others.", show_default=False),
]
ResultTables = Annotated[
    list[Path] | None,
    typer.Option(
        "--table",
        help="Write the costs as a table for a paper (.md, .tex), or all results as a workbook (.xlsx). Repeat it for each file.",
        show_default=False,
    ),
]
Appendix = Annotated[
    Path | None,
    typer.Option(
        "--appendix",
        help="Write the items of TRIPOD+AI and STARD, filled in as far as possible (.md).",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON in place of text.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of splits, folds and random draws.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, help="Number of processes.")]
Bootstrap = Annotated[int, typer.Option("--bootstrap", min=0, help="Number of replicates of the refitting bootstrap.")]
Confidence = Annotated[
    float, typer.Option("--confidence", min=0.5, max=0.9999, help="Confidence level of the intervals.")
]
Sensitivity = Annotated[
    bool,
    typer.Option(
        "--sensitivity/--no-sensitivity",
        help="Report how strong an unmeasured reason would have to be to change the conclusions.",
    ),
]
MIN_CELL = 10
MinCell = Annotated[
    int, typer.Option("--min-cell", min=0, help="The report does not show what fewer rows than this have in common.")
]
AllowPickle = Annotated[
    bool,
    typer.Option(
        "--allow-pickle", help="Also load pickles. A pickle can run any code: use it only for files that you trust."
    ),
]
