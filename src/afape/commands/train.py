"""afape train: an agent that learns from the records, with the classifier that it stops with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..files import draft_of
from . import options
from .screen import Screen, UserError, check_writable

if TYPE_CHECKING:
    from ..data import Retrospective

__all__ = ["AGENTS", "register"]

AGENTS = {
    "tree": "CostSensitiveTree",
    "naive-bayes": "CostSensitiveNaiveBayes",
    "clusters": "ClusterAgent",
    "greedy": "ValueOfInformation",
    "fitted-q": "FittedQ",
    "dqn": "DQN",
    "cwcf": "CwCF",
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="train")(train)


def train(
    agent: Annotated[str, typer.Argument(help=f"One of {', '.join(AGENTS)}.", show_default=False)],
    data: options.Data,
    problem: options.ProblemPath,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File for the agent.", show_default="AGENT.afape")
    ] = None,
    classifier: options.ClassifierSpec = None,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
    allow_pickle: options.AllowPickle = False,
) -> None:
    """Train an agent on a part of the records, and keep the rest to judge it on.

    Writes three files: the agent, the classifier that it stops with (not if one is given), and the rows that neither has
    seen. 30 % of the rows train the classifier, 30 % the agent, 40 % are kept.

    Example: afape train tree records.csv --problem records.toml
    """
    screen = Screen(as_json)
    path = out or Path(f"{agent}.afape")
    judge, rest = path.with_suffix(".classifier.afape"), path.with_suffix(f".rest{data.suffix.lower()}")
    with screen.work() as tell:
        tell("reading the table", 0, 0)
        _check(agent, path, judge, rest)
        from ..storage import save
        from .records import read_files
        from .specs import TRAINED, classifier_from

        said, frame = read_files(data, problem)
        records = said.records(frame)
        kind = classifier or TRAINED[0]
        for_classifier, for_agent, kept = records.split([0.3, 0.3, 0.4], random_state=seed)
        tell("training the classifier", 0, 0)
        if kind in TRAINED:
            from .records import untrained

            model = untrained(kind, seed).fit(for_classifier)
            save(model, judge, records.problem)
        else:
            model, judge = classifier_from(kind, records, allow_pickle), Path(kind)
        tell(f"training {agent}", 0, 0)
        learned = _agent(agent, seed).fit(for_agent, model)
        save(learned, path, records.problem)
        _write_rows(frame, kept, rest)
    files = {"agent": str(path), "classifier": str(judge), "rest": str(rest)}
    screen.say(f"Trained {AGENTS[agent]} on {len(for_agent):,} rows: {path}")
    screen.say(f"Its classifier: {judge}. Rows that neither has seen ({len(kept):,}): {rest}")
    words = f"--problem {problem} --policy {path} --classifier {judge} --report {path.stem}.html"
    screen.say(f"Next: afape evaluate {rest} {words}")
    screen.json({"command": "train", "agent": AGENTS[agent], "files": files, "rows": len(for_agent), "rest": len(kept)})


def _check(agent: str, path: Path, judge: Path, rest: Path) -> None:
    if agent not in AGENTS:
        from ..problem_file.refusal import nearest

        raise UserError(f"AGENT must be one of {', '.join(AGENTS)}, but is {agent!r}. {nearest(agent, AGENTS)}")
    check_writable(path, ".afape", "--out")
    for file in (judge, rest):
        check_writable(file, option="--out")


def _agent(name: str, seed: int) -> Any:
    """The agent, untrained, with a seed where it takes one."""
    import inspect

    from .. import agents

    kind = getattr(agents, AGENTS[name])
    return kind(random_state=seed) if "random_state" in inspect.signature(kind).parameters else kind()


def _write_rows(frame: Any, kept: Retrospective, path: Path) -> None:
    """The rows that were kept, in the format of the data; they appear whole or not at all."""
    rows = frame.iloc[kept.positions]
    with draft_of(path) as draft:
        if path.suffix in (".parquet", ".pq"):
            rows.to_parquet(draft, index=False)
        else:
            rows.to_csv(draft, index=False, sep="\t" if path.suffix in (".tsv", ".txt") else ",")
