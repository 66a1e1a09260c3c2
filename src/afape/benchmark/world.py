"""The world of an experiment: complete rows, mechanism, classifier, policies and their true costs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from ..agents.policy import Policy, bind_to_records
from ..classifiers import Classifier, ImputedClassifier
from ..data.retrospective import Retrospective
from ..datasets.heloc import load_heloc
from ..datasets.income import load_income
from ..evaluation import true_cost
from ..files.writing import atomic_write
from ..missingness.assumptions import MAR, MNAR
from ..missingness.graph_mechanism import GraphMechanism
from ..missingness.mechanisms import BlockMechanism
from ..walk.walker import WalkOptions
from .agents import Train, make_agents, parse_agent
from .description import BlockOdds, Description, Mechanism
from .section import DescriptionError
from .synthetic import synthetic_mar
from .trajectories import recorded_shares

__all__ = ["Tell", "World", "complete_table", "make_mechanism", "make_world"]

_EXACT = 6  # up to this number of groups the truth is computed over all sets
_TRAJECTORIES = 64  # per row, with more groups

Tell = Callable[[str, int, int], None]  # step, done, total
AnyMechanism = BlockMechanism | GraphMechanism


@dataclass(frozen=True, eq=False)
class World:
    """What all data sets of an experiment share.

    Attributes
    ----------
    population : Retrospective
        Complete rows that nothing was trained on. Data sets are drawn from them with replacement, so their cost is the
        truth.
    mechanism : BlockMechanism or GraphMechanism
        Hides groups.
    missingness : MAR or MNAR
        The assumption that fits the mechanism.
    classifier : Classifier
        Trained once, on records with gaps.
    policies : dict
        Agents by name, trained once on the same records.
    truth : dict
        True cost J by agent and target.
    complete_share : float
        Share of the rows that stay complete.
    recorded_shares : tuple of float
        Share of the rows with k groups with a price recorded, for k = 0, 1, ...
    """

    population: Retrospective
    mechanism: AnyMechanism
    missingness: MAR | MNAR
    classifier: Classifier
    policies: Mapping[str, Policy]
    truth: Mapping[str, Mapping[str, float]]
    complete_share: float
    recorded_shares: tuple[float, ...]


def make_world(description: Description, complete: Retrospective, folder: Path, seed: int, tell: Tell) -> World:
    """Split the complete table, train classifier and agents, and compute the true costs.

    Trained agents and true costs are kept in ``folder`` and read from there the next time.
    """
    base, agents = Path(description.folder), description.agents_used
    wanted = {name: parse_agent(text, description.rounds, seed, base) for name, text in agents.items()}
    _check_agents(wanted, complete)
    mechanism, missingness = make_mechanism(description.mechanism, complete)
    gaps = mechanism.hide(complete, seed)
    shares = [description.train, 1 - description.train]
    train, _ = gaps.split(shares, seed)
    _, population = complete.split(shares, seed)
    _check_sizes(description, len(population))
    tell("training classifier and agents", 0, 1)
    forest = RandomForestClassifier(description.trees, max_depth=description.depth, random_state=seed)
    classifier = ImputedClassifier(forest, random_state=seed, decide="label").fit(train)  # as in the paper
    policies = make_agents(wanted, train, classifier, folder)
    truth = _truth(population, policies, classifier, folder / "truth.json", tell)
    share = float(gaps.complete.mean())
    return World(population, mechanism, missingness, classifier, policies, truth, share, recorded_shares(gaps))


def complete_table(description: Description, data: Path | None, seed: int) -> Retrospective:
    """Return the complete table that a description names; ``data``, a file or folder, takes precedence."""
    source, problem = description.table, description.make_problem()
    if source.source == "synthetic":
        return synthetic_mar(source.rows, seed + 1).complete  # its own default seed is 1
    frame = _load_table(description, data)
    if description.quick and len(frame) > source.rows:
        frame = frame.sample(source.rows, random_state=seed).reset_index(drop=True)
    table = Retrospective(frame, problem)
    gaps = int((~table.complete).sum())
    if gaps:
        raise DescriptionError(
            f"The table of an experiment must be complete, because the true cost is computed from it, but {gaps} of "
            f"{len(table)} rows have gaps. Drop these rows, or impute them first."
        )
    return table


def _load_table(description: Description, data: Path | None) -> pd.DataFrame:
    source = description.table
    if source.source:
        if source.source == "income":
            return load_income(data)
        return (
            load_heloc(data)
            if source.codes == "keep"
            else _without_codes(load_heloc(data, codes="all-missing", empty_rows="keep"))
        )
    return _read(Path(description.folder) / source.file if data is None else data)


def _without_codes(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the mean of its column in every blank cell."""
    return frame.fillna(frame.mean(numeric_only=True))


def _read(file: Path) -> pd.DataFrame:
    if not file.is_file():
        raise DescriptionError(f"The table {str(file)!r} does not exist.")
    try:
        return pd.read_parquet(file) if file.suffix in (".parquet", ".pq") else pd.read_csv(file)
    except Exception as error:  # pyarrow and pandas raise many types
        raise DescriptionError(f"The table {str(file)!r} cannot be read: {error}") from error


def _check_agents(wanted: Mapping[str, Policy | Train], complete: Retrospective) -> None:
    """Refuse agents with unknown groups, before anything is trained."""
    for agent in wanted.values():
        if not callable(agent):
            bind_to_records(agent, complete, "agents")


def _check_sizes(description: Description, n_rows: int) -> None:
    """Refuse data sets without replacement that are larger than the population, before anything is trained."""
    for run in description.runs:
        if not run.replace and max(run.rows) > n_rows:
            raise DescriptionError(
                f"The run {run.name!r} draws {max(run.rows)} rows without replacement, but only {n_rows} rows are left after "
                "training. Lower 'rows', or set 'replace' to true."
            )


def make_mechanism(described: Mechanism, data: Retrospective) -> tuple[AnyMechanism, MAR | MNAR]:
    """Return the mechanism in the units of these columns, and the assumption that fits it."""
    odds = [_odds(block, data) for block in described.blocks]
    if described.graph:
        each = [(g, o) for block, o in zip(described.blocks, odds, strict=True) for g in block.groups]
        graph = GraphMechanism(described.graph, {g: o[0] for g, o in each}, {g: o[1] for g, o in each})
        return graph, graph.missingness
    blocks, intercepts, weights = {}, {}, {}
    for block, (intercept, by_column) in zip(described.blocks, odds, strict=True):
        for groups in [block.groups] if block.together else [(g,) for g in block.groups]:
            name = ", ".join(groups)
            blocks[name], intercepts[name], weights[name] = list(groups), intercept, by_column
    return BlockMechanism(blocks, intercepts, weights), MAR(list(described.given))


def _odds(block: BlockOdds, data: Retrospective) -> tuple[float, dict[str, float]]:
    """Return the intercept and the weights by column, in the units of the columns."""
    intercept, weights = block.intercept, {}
    for column, weight in block.weights.items():
        if column not in data.columns:
            raise DescriptionError(
                f"'weights' must name columns of the table, but {column!r} is not one. The columns are "
                f"{list(data.columns)[:20]}; a level of a category is written column=level."
            )
        values, scale = data.values[:, data.columns.index(column)], block.scales.get(column, "raw")
        centre, spread = {
            "raw": (0.0, 1.0),
            "standard": (float(values.mean()), float(values.std())),
            "unit": (float(values.min()), float(np.ptp(values))),
        }[scale]
        if spread == 0:
            raise DescriptionError(
                f"Column {column!r} of a mechanism is constant, so it cannot be scaled. Set its scale to 'raw'."
            )
        intercept -= weight * centre / spread
        weights[column] = weight / spread
    return intercept, weights


def _truth(
    population: Retrospective, policies: Mapping[str, Policy], classifier: Classifier, file: Path, tell: Tell
) -> dict[str, dict[str, float]]:
    """Return the true costs J by agent and target, from the whole population."""
    if file.exists():
        found: dict[str, dict[str, float]] = json.loads(file.read_text())
        return found
    sampled = WalkOptions(max_states=0, n_trajectories=_TRAJECTORIES)
    walk = WalkOptions() if population.problem.n_groups <= _EXACT else sampled
    out = {}
    for k, (name, policy) in enumerate(policies.items()):
        tell(f"true cost of {name}", k, len(policies))
        costs = true_cost(population, policy, classifier, walk=walk)
        out[name] = {target: estimate.value for target, estimate in costs.items()}
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(file) as draft:
        draft.write_text(json.dumps(out))
    return out
