"""Experiments as data: what a TOML file says about one, checked before any work."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ..arguments import check_count, check_flag, check_path
from ..data import Problem
from .reading import DescriptionError, Section

__all__ = ["Block", "Description", "FigureSpec", "Mechanism", "Run", "TableSource", "read_description"]

_SOURCES = ("synthetic", "heloc", "income")
_SCALES = ("raw", "standard", "unit")
_FIGURES = ("convergence", "intervals", "robustness")
_VALUES = ("quadratic", "pooled", "boosting", "network", "constant")


@dataclass(frozen=True)
class TableSource:
    """Where the complete table comes from: a public one by name, or a file."""

    source: str
    file: str = ""
    rows: int = 150_000  # of the synthetic problem; in a quick run, at most so many of any table


@dataclass(frozen=True)
class Block:
    """Groups that are recorded with the same odds: together, or each by a coin of its own."""

    groups: tuple[str, ...]
    intercept: float = 0.0
    weights: Mapping[str, float] = field(default_factory=dict)
    scales: Mapping[str, str] = field(default_factory=dict)
    together: bool = False


@dataclass(frozen=True)
class Mechanism:
    """How groups are hidden, and what is assumed about it: always recorded groups, or a graph."""

    given: tuple[str, ...]
    graph: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Run:
    """Data sets of one kind, and what is estimated on them.

    Attributes
    ----------
    name : str
        Name in tables.
    rows : tuple of int
        Sizes of the data sets.
    draws : int
        Data sets of each size.
    agents, estimators : tuple of str
        Names; empty for all.
    known : bool
        Whether the true propensity is used beside the learned one.
    propensity : {"learned", "constant"}
        Constant is wrong on purpose.
    values : str
        How action values are learned; "constant" is wrong on purpose.
    label : bool
        Whether action values condition on the label.
    split : float
        Learn nuisances from this share of the rows in place of cross-fitting; 0 cross-fits.
    imputations : int
        Completed tables of ``mi``.
    trajectories : int
        Trajectories per row, for policies that reach hundreds of sets; 0 walks all sets. For a deterministic policy both are the
        same.
    assume : tuple of str
        Assume MAR given these groups, whatever the mechanism.
    bounds : bool
        Give bounds where more than 1 % of the runs are unsupported, as `evaluate` does; else estimates, whose errors are then
        measured.
    """

    name: str
    rows: tuple[int, ...]
    draws: int
    agents: tuple[str, ...] = ()
    estimators: tuple[str, ...] = ()
    known: bool = True
    propensity: str = "learned"
    values: str = "quadratic"
    label: bool = True
    split: float = 0.0
    imputations: int = 5
    trajectories: int = 0
    assume: tuple[str, ...] = ()
    bounds: bool = False


@dataclass(frozen=True)
class FigureSpec:
    """A figure of some runs, and two sentences about it."""

    name: str
    kind: str
    runs: tuple[str, ...]
    agents: tuple[str, ...]
    estimators: tuple[str, ...]
    title: str
    words: str


@dataclass(frozen=True)
class Description:
    """One experiment: complete table, mechanism, split, classifier, agents, runs and figures."""

    name: str
    title: str
    about: str
    table: TableSource
    problem: Mapping[str, Any]
    mechanism: Mechanism
    train: float
    trees: int
    depth: int
    agents: Mapping[str, str]
    rounds: int
    runs: tuple[Run, ...]
    figures: tuple[FigureSpec, ...]
    quick: bool = False
    folder: str = "."  # where files that it names are

    def make_problem(self) -> Problem:
        """The decision problem."""
        return Problem(**self.problem)

    def reduced(self, draws: int) -> Description:
        """The same with at most so many data sets of each size; a spread needs two."""
        check_count("draws", draws, 2)
        return replace(self, runs=tuple(replace(run, draws=min(run.draws, draws)) for run in self.runs))

    @property
    def fingerprint(self) -> str:
        """Tells experiments apart whose numbers differ; how many data sets are drawn and figures do not count."""
        said = asdict(self)
        said["runs"] = [{k: v for k, v in run.items() if k != "draws"} for run in said["runs"]]
        for other in ("figures", "about", "title", "folder"):
            said.pop(other)
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]


def read_description(file: str | Path, *, quick: bool = False) -> Description:
    """Read and check an experiment; ``quick`` takes the reduced sizes that it names.

    Every key is checked: a misspelt one is an error that names the section and its keys.
    """
    file = check_path("file", file, "the path of a TOML file")
    check_flag("quick", quick)
    try:
        said = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DescriptionError(f"There is no file {str(file)!r}. An experiment is described in a TOML file.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, IsADirectoryError) as error:
        raise DescriptionError(f"{file} is not a TOML file: {error}") from error
    top = Section(file.name, "the top level", said)
    less = top.section("quick", optional=True)
    name, agents = top.text("name"), top.texts_by_name("agents")
    train, trees, depth = _models(top, less, quick)
    runs = tuple(_run(part, agents, quick) for part in top.sections("runs"))
    found = Description(
        name=name,
        title=top.text("title", default=name),
        about=top.text("about", default=""),
        table=_table(top.section("table"), less, quick),
        problem=_problem(top.section("problem")),
        mechanism=_mechanism(top.section("mechanism")),
        train=train,
        trees=trees,
        depth=depth,
        agents=agents,
        rounds=less.whole("rounds", default=2) if quick else top.whole("rounds", default=100),
        runs=runs,
        figures=tuple(_figure(part, runs, agents) for part in top.sections("figures", optional=True)),
        quick=quick,
        folder=str(file.parent),
    )
    top.finish(also=("rounds",))
    less.finish(also=("rows", "rounds", "trees"))
    _check_names(found, file.name)
    return found


def _models(top: Section, less: Section, quick: bool) -> tuple[float, int, int]:
    part = top.section("classifier", optional=True)
    trees, depth = part.whole("trees", default=50), part.whole("depth", default=10)
    part.finish()
    train = top.number("train", default=0.4)
    if not 0 < train < 1:
        raise DescriptionError(
            f"{top.file}: 'train' must lie between 0 and 1, the share of rows to train on, but is {train!r}."
        )
    return train, less.whole("trees", default=trees) if quick else trees, depth


def _table(part: Section, less: Section, quick: bool) -> TableSource:
    source, file = part.text("source", default=""), part.text("file", default="")
    rows = part.whole("rows", default=150_000)
    part.finish()
    if bool(source) == bool(file):
        raise DescriptionError(f"{part} must have either 'source', one of {list(_SOURCES)}, or 'file'.")
    if source and source not in _SOURCES:
        raise DescriptionError(f"{part} must have a 'source' among {list(_SOURCES)}, but it is {source!r}.")
    return TableSource(source, file, less.whole("rows", default=6000) if quick else rows)


def _problem(part: Section) -> dict[str, Any]:
    found: dict[str, Any] = {
        "groups": {name: part.texts_of("groups", name, value) for name, value in part.mapping("groups").items()},
        "costs": part.mapping("costs"),
        "label": part.text("label"),
        "misclassification_cost": part.anything("misclassification_cost"),
    }
    for key in ("classes", "categories"):
        if (value := part.anything(key, default=None)) is not None:
            found[key] = value
    part.finish()
    try:
        Problem(**found)
    except (TypeError, ValueError) as error:
        raise DescriptionError(f"{part} does not describe a problem: {error}") from error
    return found


def _mechanism(part: Section) -> Mechanism:
    given, graph = part.texts("given", default=()), part.text("graph", default="")
    if bool(given) == bool(graph):
        raise DescriptionError(f"{part} must have either 'given', groups that are always recorded, or a 'graph'.")
    blocks = tuple(_block(block) for block in part.sections("blocks"))
    part.finish()
    return Mechanism(given, graph, blocks)


def _block(part: Section) -> Block:
    weights = {c: part.as_number("weights", v) for c, v in part.mapping("weights", optional=True).items()}
    scales = {c: str(v) for c, v in part.mapping("scales", optional=True).items()}
    for column, scale in scales.items():
        if scale not in _SCALES or column not in weights:
            raise DescriptionError(
                f"{part}: 'scales' must name columns of 'weights' {list(weights)} and be one of {list(_SCALES)}, but says "
                f"{column} = {scale!r}."
            )
    intercept, together = part.number("intercept", default=0.0), part.flag("together", default=False)
    found = Block(part.texts("groups"), intercept, weights, scales, together)
    part.finish()
    return found


def _run(part: Section, agents: Mapping[str, str], quick: bool) -> Run:
    less = part.section("quick", optional=True)
    rows, draws = part.wholes("rows"), part.whole("draws", default=20)
    estimators, agents_named = part.texts("estimators", default=()), part.texts("agents", default=())
    if quick:
        rows, draws = less.wholes("rows", default=(min(rows[0], 300),)), less.whole("draws", default=2)
        estimators = less.texts("estimators", default=estimators)
        agents_named = less.texts("agents", default=agents_named)
    less.finish(also=("rows", "draws", "estimators", "agents"))
    run = Run(
        name=part.text("name"),
        rows=rows,
        draws=draws,
        agents=agents_named,
        estimators=estimators,
        known=part.flag("known", default=True),
        propensity=part.text("propensity", default="learned"),
        values=part.text("values", default="quadratic"),
        label=part.flag("label", default=True),
        split=part.number("split", default=0.0),
        imputations=part.whole("imputations", default=5),
        trajectories=part.whole("trajectories") if "trajectories" in part.content else 0,
        assume=part.texts("assume", default=()),
        bounds=part.flag("bounds", default=False),
    )
    part.finish()
    part.require("propensity", run.propensity, ("learned", "constant"))
    part.require("values", run.values, _VALUES)
    for agent in run.agents:
        part.require("agents", agent, tuple(agents))
    return run


def _figure(part: Section, runs: tuple[Run, ...], agents: Mapping[str, str]) -> FigureSpec:
    figure = FigureSpec(
        part.text("name"),
        part.text("kind"),
        part.texts("runs"),
        part.texts("agents", default=()),
        part.texts("estimators", default=()),
        part.text("title", default=""),
        part.text("words", default=""),
    )
    part.finish()
    part.require("kind", figure.kind, _FIGURES)
    for run in figure.runs:
        part.require("runs", run, tuple(r.name for r in runs))
    for agent in figure.agents:
        part.require("agents", agent, tuple(agents))
    return figure


def _check_names(found: Description, file: str) -> None:
    """Refuse groups, columns and runs that do not fit together."""
    groups = list(found.problem["groups"])
    named = [("given", g) for g in found.mechanism.given]
    named += [("blocks", g) for block in found.mechanism.blocks for g in block.groups]
    named += [("assume", g) for run in found.runs for g in run.assume]
    for key, group in named:
        if group not in groups:
            raise DescriptionError(f"{file}: {key!r} must name groups of the problem {groups}, but {group!r} is none.")
    names = [run.name for run in found.runs]
    if twice := [n for n in names if names.count(n) > 1]:
        raise DescriptionError(f"{file}: runs must have different names, but {twice[0]!r} comes twice.")
