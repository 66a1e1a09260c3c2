"""The description of an experiment: read from a TOML file and checked before any work."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from .._arguments import check_count, check_flag, check_path
from ..data.problem import Problem
from .section import DescriptionError, Section

__all__ = ["BlockOdds", "Description", "FigureSpec", "Mechanism", "Run", "TableSource", "read_description"]

_SOURCES = ("synthetic", "heloc", "income")
_SCALES = ("raw", "standard", "unit")
_FIGURES = ("convergence", "intervals", "robustness")
_TARGETS = ("misclassification", "acquisition", "total")
_CODES = ("keep", "mean")
_VALUES = ("quadratic", "pooled", "boosting", "network", "constant")


@dataclass(frozen=True)
class TableSource:
    """Where the complete table comes from: a public table by name, or a file."""

    source: str
    file: str = ""
    rows: int = 150_000  # of the synthetic problem; a quick run takes at most this many rows of any table
    codes: str = (
        "keep"  # of Heloc: "keep" drops rows that contain only codes, "mean" keeps them and sets codes to the mean
    )


@dataclass(frozen=True)
class BlockOdds:
    """Groups that are recorded with the same log odds: all or none of them (``together``), or each independently."""

    groups: tuple[str, ...]
    intercept: float = 0.0
    weights: Mapping[str, float] = field(default_factory=dict)
    scales: Mapping[str, str] = field(default_factory=dict)
    together: bool = False


@dataclass(frozen=True)
class Mechanism:
    """How groups are hidden, and the assumption about it: MAR ``given`` groups, or MNAR with a ``graph``."""

    given: tuple[str, ...]
    graph: str
    blocks: tuple[BlockOdds, ...]


@dataclass(frozen=True)
class Run:
    """Data sets of an experiment, and the estimators to run on them.

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
        True if estimators with the true propensity are added (``-gt``).
    propensity : {"learned", "constant"}
        "constant" is wrong on purpose.
    values : str
        How action values are learned; "constant" is wrong on purpose.
    label : bool
        True if action values condition on the label.
    split : float
        Share of the rows that nuisances are learned from; 0 cross-fits instead.
    imputations : int
        Number of completed tables of ``mi``.
    trajectories : int
        Trajectories per row, for policies that reach hundreds of sets; 0 enumerates all sets. For a deterministic policy
        both give the same numbers.
    assume : tuple of str
        Assume MAR given these groups, in place of the assumption that fits the mechanism.
    acquisition_weight : {"before", "after"}
        Weight of a price in IPW, see `evaluate`.
    frozen : int
        Replicates of a bootstrap that learns nothing again. Standard errors and intervals come from it, as in the paper; 0
        for standard errors from influence values.
    replace : bool
        True if rows are drawn with replacement. False draws each row at most once, so a data set of all rows is the
        population.
    bounds : bool
        True if bounds replace estimates where more than 1 % of the runs are unsupported, as in `evaluate`. If False, errors
        can be measured everywhere.
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
    acquisition_weight: str = "before"
    frozen: int = 0
    replace: bool = True
    bounds: bool = False


@dataclass(frozen=True)
class FigureSpec:
    """A figure that shows some runs, and the sentences below it."""

    name: str
    kind: str
    runs: tuple[str, ...]
    agents: tuple[str, ...]
    estimators: tuple[str, ...]
    title: str
    words: str
    targets: tuple[str, ...] = ("total",)

    @property
    def files(self) -> dict[str, str]:
        """Names of the files without suffix, by target; the first target has the name of the figure."""
        first = self.targets[0]
        return {target: self.name if target == first else f"{self.name}-{target}" for target in self.targets}


@dataclass(frozen=True)
class Description:
    """An experiment: complete table, mechanism, split, classifier, agents, runs and figures."""

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
    folder: str = "."  # files named in the description are relative to it

    @property
    def agents_used(self) -> dict[str, str]:
        """The agents that occur in a run, in their order."""
        if any(not run.agents for run in self.runs):
            return dict(self.agents)
        named = {name for run in self.runs for name in run.agents}
        return {name: text for name, text in self.agents.items() if name in named}

    def make_problem(self) -> Problem:
        """Return the decision problem."""
        return Problem(**self.problem)

    def reduced(self, draws: int) -> Description:
        """Return a copy with at most ``draws`` data sets of each size; a standard deviation needs two."""
        check_count("draws", draws, 2)
        return replace(self, runs=tuple(replace(run, draws=min(run.draws, draws)) for run in self.runs))

    @property
    def fingerprint(self) -> str:
        """Hash of everything that changes numbers; the number of data sets and the figures are left out."""
        content = asdict(self)
        content["runs"] = [{k: v for k, v in run.items() if k != "draws"} for run in content["runs"]]
        for other in ("figures", "about", "title", "folder"):
            content.pop(other)
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def read_description(file: str | Path, *, quick: bool = False, full: bool = False) -> Description:
    """Read and check the description of an experiment.

    Parameters
    ----------
    file : str or Path
        TOML file. An unknown key is an error that names its section.
    quick : bool
        True if the reduced sizes of the description are used.
    full : bool
        True if the full sizes of the description are used, where a run states them.
    """
    file = check_path("file", file, "the path of a TOML file")
    check_flag("quick", quick)
    check_flag("full", full)
    if quick and full:
        raise DescriptionError("'quick' and 'full' cannot both be true: choose reduced or full sizes.")
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DescriptionError(f"There is no file {str(file)!r}. It must be the TOML file of an experiment.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, IsADirectoryError) as error:
        raise DescriptionError(f"{str(file)!r} must be a TOML file, but cannot be read: {error}") from error
    top = Section(file.name, "the top level", content)
    less = top.section("quick", optional=True)
    name, agents = top.text("name"), top.texts_by_name("agents")
    train, trees, depth = _models(top, less, quick)
    runs = tuple(_run(section, agents, quick, full) for section in top.sections("runs"))
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
        figures=tuple(_figure(section, runs, agents) for section in top.sections("figures", optional=True)),
        quick=quick,
        folder=str(file.parent),
    )
    top.finish(also=("rounds",))
    less.finish(also=("rows", "rounds", "trees"))
    _check_names(found, file.name)
    return found


def _models(top: Section, less: Section, quick: bool) -> tuple[float, int, int]:
    section = top.section("classifier", optional=True)
    trees, depth = section.whole("trees", default=50), section.whole("depth", default=10)
    section.finish()
    train = top.number("train", default=0.4)
    if not 0 < train < 1:
        raise DescriptionError(
            f"{top.file}: 'train', the share of rows to train on, must lie between 0 and 1, but is {train!r}."
        )
    return train, less.whole("trees", default=trees) if quick else trees, depth


def _table(section: Section, less: Section, quick: bool) -> TableSource:
    source, file = section.text("source", default=""), section.text("file", default="")
    rows, codes = section.whole("rows", default=150_000), section.text("codes", default="keep")
    section.finish()
    section.require("codes", codes, _CODES)
    if codes != "keep" and source != "heloc":
        raise DescriptionError(f"{section}: 'codes' is for the source heloc, which has codes for missing values.")
    if bool(source) == bool(file):
        raise DescriptionError(f"{section} must have 'source', one of {list(_SOURCES)}, or 'file', but not both.")
    if source and source not in _SOURCES:
        raise DescriptionError(f"{section} must have a 'source' among {list(_SOURCES)}, but it is {source!r}.")
    return TableSource(source, file, less.whole("rows", default=6000) if quick else rows, codes)


def _problem(section: Section) -> dict[str, Any]:
    found: dict[str, Any] = {
        "groups": {name: section.texts_of("groups", name, value) for name, value in section.mapping("groups").items()},
        "costs": section.mapping("costs"),
        "label": section.text("label"),
        "misclassification_cost": section.anything("misclassification_cost"),
    }
    for key in ("classes", "categories", "blank_means"):
        if (value := section.anything(key, default=None)) is not None:
            found[key] = value
    section.finish()
    try:
        Problem(**found)
    except (TypeError, ValueError) as error:
        raise DescriptionError(f"{section} does not describe a problem: {error}") from error
    return found


def _mechanism(section: Section) -> Mechanism:
    given, graph = section.texts("given", default=()), section.text("graph", default="")
    if bool(given) == bool(graph):
        raise DescriptionError(
            f"{section} must have 'given', a list of groups that are always recorded, or 'graph', but not both."
        )
    blocks = tuple(_block(block) for block in section.sections("blocks"))
    section.finish()
    return Mechanism(given, graph, blocks)


def _block(section: Section) -> BlockOdds:
    weights = {c: section.as_number("weights", v) for c, v in section.mapping("weights", optional=True).items()}
    scales = {c: str(v) for c, v in section.mapping("scales", optional=True).items()}
    for column, scale in scales.items():
        if scale not in _SCALES or column not in weights:
            raise DescriptionError(
                f"{section}: 'scales' must map columns of 'weights', {list(weights)}, to one of {list(_SCALES)}, but "
                f"has {column} = {scale!r}."
            )
    intercept, together = section.number("intercept", default=0.0), section.flag("together", default=False)
    found = BlockOdds(section.texts("groups"), intercept, weights, scales, together)
    section.finish()
    return found


def _run(section: Section, agents: Mapping[str, str], quick: bool, full: bool) -> Run:
    less = section.section("quick", optional=True)
    rows, draws = section.wholes("rows"), section.whole("draws", default=20)
    estimators, agents_named = section.texts("estimators", default=()), section.texts("agents", default=())
    if quick:
        rows, draws = less.wholes("rows", default=(min(rows[0], 300),)), less.whole("draws", default=2)
        estimators = less.texts("estimators", default=estimators)
        agents_named = less.texts("agents", default=agents_named)
    less.finish(also=("rows", "draws", "estimators", "agents"))
    more = section.section("full", optional=True)
    if full:
        rows, draws = more.wholes("rows", default=rows), more.whole("draws", default=draws)
    more.finish(also=("rows", "draws"))
    run = Run(
        name=section.text("name"),
        rows=rows,
        draws=draws,
        agents=agents_named,
        estimators=estimators,
        known=section.flag("known", default=True),
        propensity=section.text("propensity", default="learned"),
        values=section.text("values", default="quadratic"),
        label=section.flag("label", default=True),
        split=section.number("split", default=0.0),
        imputations=section.whole("imputations", default=5),
        trajectories=section.whole("trajectories") if "trajectories" in section.content else 0,
        assume=section.texts("assume", default=()),
        acquisition_weight=section.text("acquisition_weight", default="before"),
        frozen=section.whole("frozen") if "frozen" in section.content else 0,
        replace=section.flag("replace", default=True),
        bounds=section.flag("bounds", default=False),
    )
    section.finish()
    section.require("propensity", run.propensity, ("learned", "constant"))
    section.require("values", run.values, _VALUES)
    section.require("acquisition_weight", run.acquisition_weight, ("before", "after"))
    if run.frozen == 1:
        raise DescriptionError(
            f"{section}: 'frozen' must be at least 2, because a standard error needs two replicates."
        )
    for agent in run.agents:
        section.require("agents", agent, tuple(agents))
    return run


def _figure(section: Section, runs: tuple[Run, ...], agents: Mapping[str, str]) -> FigureSpec:
    figure = FigureSpec(
        section.text("name"),
        section.text("kind"),
        section.texts("runs"),
        section.texts("agents", default=()),
        section.texts("estimators", default=()),
        section.text("title", default=""),
        section.text("words", default=""),
        section.texts("targets", default=("total",)),
    )
    section.finish()
    for target in figure.targets:
        section.require("targets", target, _TARGETS)
    if not figure.targets:
        raise DescriptionError(f"{section}: 'targets' must name at least one of {list(_TARGETS)}.")
    section.require("kind", figure.kind, _FIGURES)
    for run in figure.runs:
        section.require("runs", run, tuple(r.name for r in runs))
    for agent in figure.agents:
        section.require("agents", agent, tuple(agents))
    return figure


def _check_names(found: Description, file: str) -> None:
    """Refuse unknown groups, and runs that share a name."""
    groups = list(found.problem["groups"])
    named = [("given", g) for g in found.mechanism.given]
    named += [("blocks", g) for block in found.mechanism.blocks for g in block.groups]
    named += [("assume", g) for run in found.runs for g in run.assume]
    for key, group in named:
        if group not in groups:
            raise DescriptionError(
                f"{file}: {key!r} must name groups of the problem {groups}, but {group!r} is not one."
            )
    names = [run.name for run in found.runs]
    if twice := [n for n in names if names.count(n) > 1]:
        raise DescriptionError(f"{file}: runs must have different names, but two have the name {twice[0]!r}.")
