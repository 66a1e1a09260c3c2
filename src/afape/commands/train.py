"""``afape train``: train an agent and its classifier on the records."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..files.writing import atomic_write
from . import options
from .screen import Screen, UserError, check_writable

if TYPE_CHECKING:
    from ..classifiers import Classifier
    from ..data.retrospective import Retrospective

__all__ = ["train"]

_AGENTS: dict[str, Callable[[Any, int], Any]] = {  # functions of the module `agents` and a seed
    "tree": lambda agents, seed: agents.CostSensitiveTree(),
    "naive-bayes": lambda agents, seed: agents.CostSensitiveNaiveBayes(random_state=seed),
    "clusters": lambda agents, seed: agents.ClusterAgent(random_state=seed),
    "greedy": lambda agents, seed: agents.ValueOfInformation(random_state=seed),
    "look-ahead": lambda agents, seed: agents.LookAhead(random_state=seed),
    "fitted-q": lambda agents, seed: agents.FittedQ(random_state=seed),
    "dqn": lambda agents, seed: agents.DQN(random_state=seed),
    "cwcf": lambda agents, seed: agents.CwCF(random_state=seed),
}
_WITH_JAX = ("dqn", "cwcf")


def train(
    agent: Annotated[str, typer.Argument(help=f"One of {', '.join(_AGENTS)}.", show_default=False)],
    data: options.Data,
    problem: options.ProblemPath,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File for the agent.", show_default="AGENT.afape")
    ] = None,
    classifier: options.ClassifierSpec = None,
    decide: options.Decide = None,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
    allow_pickle: options.AllowPickle = False,
) -> None:
    """Train an agent on some of the rows, and keep the other rows to evaluate it on.

    Writes three files: the agent, its classifier (unless you pass a trained one), and the rows kept for evaluation.
    30 % of the rows train the classifier, 30 % train the agent, 40 % are kept.

    Example: afape train tree records.csv --problem records.toml
    """
    screen = Screen(as_json)
    path = out or Path(f"{agent}.afape")
    classifier_path, rest = path.with_suffix(".classifier.afape"), path.with_suffix(f".rest{data.suffix.lower()}")
    with screen.work() as tell:
        tell("reading the table", 0, 0)
        _check(agent, path, classifier_path, rest)
        from .. import agents
        from ..files.saved import save
        from .classifiers import BEST, TRAINED, check_decide, existing_classifier, train_named
        from .inputs import read_files

        problem_file, frame = read_files(data, problem)
        records = problem_file.records(frame)
        kind = classifier or BEST
        check_decide(decide, kind)
        for_classifier, for_agent, kept = records.split([0.3, 0.3, 0.4], random_state=seed)
        tell("training the classifier", 0, 0)
        model: Classifier
        if kind in TRAINED:
            model, _ = train_named(kind, for_classifier, decide, seed)
            save(model, classifier_path, records.problem)
        else:
            model, classifier_path = existing_classifier(kind, records, allow_pickle), Path(kind)
        tell(f"training {agent}", 0, 0)
        trained = _AGENTS[agent](agents, seed).fit(for_agent, model)
        save(trained, path, records.problem)
        _write_rows(frame, kept, rest)
    files = {"agent": str(path), "classifier": str(classifier_path), "rest": str(rest)}
    kind = type(trained).__name__
    screen.say(f"Trained {kind} on {len(for_agent):,} rows: {path}")
    screen.say(f"Classifier: {classifier_path}. Rows kept for evaluation ({len(kept):,}): {rest}")
    words = f"--problem {problem} --policy {path} --classifier {classifier_path} --report {path.stem}.html"
    screen.say(f"Next: afape evaluate {rest} {words}")
    screen.json({"command": "train", "agent": kind, "files": files, "rows": len(for_agent), "rest": len(kept)})


def _check(agent: str, path: Path, classifier_path: Path, rest: Path) -> None:
    """Refuse unknown agents, and files that cannot be written."""
    if agent not in _AGENTS:
        from ..files.errors import nearest

        raise UserError(f"AGENT must be one of {', '.join(_AGENTS)}, but is {agent!r}. {nearest(agent, _AGENTS)}")
    lacking = [name for name in ("jax", "optax") if agent in _WITH_JAX and find_spec(name) is None]
    if lacking:
        raise UserError(
            f"{agent} learns with jax and optax, but {' and '.join(lacking)} cannot be found: pip install 'afape[agents]'. "
            "fitted-q learns without them."
        )
    check_writable(path, ".afape", "--out")
    for file in (classifier_path, rest):
        check_writable(file, option="--out")


def _write_rows(frame: Any, kept: Retrospective, path: Path) -> None:
    """Write the kept rows in the format of the data."""
    rows = frame.iloc[kept.positions]
    with atomic_write(path) as draft:
        if path.suffix in (".parquet", ".pq"):
            rows.to_parquet(draft, index=False)
        else:
            rows.to_csv(draft, index=False, sep="\t" if path.suffix in (".tsv", ".txt") else ",")
