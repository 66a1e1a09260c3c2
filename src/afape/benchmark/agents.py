"""The agents of an experiment: policies that are named in its description, or trained on its rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

from ..agents.builtin import AcquireAll, AcquireNone, FixedOrder, RandomSubset
from ..agents.policy import Policy
from ..classifiers import Classifier
from ..data.retrospective import Retrospective
from ..files.saved import load, save
from ..warnings import SeenRowsWarning
from .section import DescriptionError

__all__ = ["make_agents", "parse_agent", "saved_agent_file"]

_KINDS = "'random:0.1', 'fixed:group,group', 'all', 'none', 'dqn', 'dqn:recorded', 'fitted-q', or 'file:PATH' for a saved agent"

Train = Callable[[Retrospective, Classifier], Policy]


def parse_agent(text: str, rounds: int, seed: int, folder: Path) -> Policy | Train:
    """Return the policy that a text describes, or a function that trains it.

    Parameters
    ----------
    text : str
        For example "random:0.1", "all", "dqn" or "file:agent.afape".
    rounds, seed : int
        Rounds of training and seed, for agents that learn.
    folder : Path
        Paths of saved agents are relative to it.
    """
    kind, _, rest = text.partition(":")
    if kind == "random" and rest:
        try:
            return RandomSubset(float(rest))
        except ValueError as error:
            raise DescriptionError(f"The agent {text!r} is not valid: {error}") from error
    if kind == "fixed" and rest:
        return FixedOrder([name.strip() for name in rest.split(",")])
    if (file := saved_agent_file(text, folder)) is not None:
        saved: Policy = load(file)
        return saved
    plain: dict[str, Callable[[], Policy | Train]] = {
        "all": AcquireAll,
        "none": AcquireNone,
        "dqn": lambda: _dqn(rounds, seed, "all"),
        "dqn:recorded": lambda: _dqn(rounds, seed, "recorded"),
        "fitted-q": lambda: _fitted_q(seed),
    }
    if text not in plain:
        raise DescriptionError(f"An agent must be {_KINDS}, but is {text!r}.")
    return plain[text]()


def saved_agent_file(text: str, folder: Path) -> Path | None:
    """Return the file of a saved agent, or None for other agents."""
    kind, _, rest = text.partition(":")
    return folder / rest if kind == "file" and rest else None


def _dqn(rounds: int, seed: int, targets: str) -> Train:
    def train(data: Retrospective, classifier: Classifier) -> Policy:
        from ..agents.dqn import DQN
        from ..agents.settings import Training

        return DQN(Training(n_rounds=rounds), targets=targets, random_state=seed).fit(data, classifier)

    return train


def _fitted_q(seed: int) -> Train:
    def train(data: Retrospective, classifier: Classifier) -> Policy:
        from ..agents.fitted_q import FittedQ

        return FittedQ(random_state=seed).fit(data, classifier)

    return train


def make_agents(
    wanted: dict[str, Policy | Train], train: Retrospective, classifier: Classifier, folder: Path
) -> dict[str, Policy]:
    """Return all policies by name, after training those that learn on records with gaps.

    A trained agent is saved to the folder; if it is there already, it is read. Agent and classifier learn from the same
    rows, as in the paper.
    """
    out: dict[str, Policy] = {}
    for number, (name, agent) in enumerate(wanted.items()):
        if not callable(agent):
            out[name] = agent
            continue
        file = folder / f"agent-{number}.afape"
        if not file.exists():
            folder.mkdir(parents=True, exist_ok=True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SeenRowsWarning)  # see the docstring
                save(agent(train, classifier), file, train.problem)
        out[name] = load(file, train.problem)
    return out
