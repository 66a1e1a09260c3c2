"""Policies of an experiment, by a few words each."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

from ..agents import AcquireAll, AcquireNone, FixedOrder, Policy, RandomSubset
from ..classifiers import Classifier
from ..data import Retrospective
from ..notices import SeenRowsWarning
from ..storage import load, save
from .reading import DescriptionError

__all__ = ["make_agents", "parse_agent"]

_KINDS = "'random:0.1', 'fixed:group,group', 'all', 'none', 'dqn', 'fitted-q' or 'file:PATH' of a saved agent"

Train = Callable[[Retrospective, Classifier], Policy]


def parse_agent(text: str, rounds: int, seed: int, folder: Path) -> Policy | Train:
    """A policy, or a function that trains one; ``folder`` is where the paths of saved agents begin."""
    kind, _, rest = text.partition(":")
    if kind == "random" and rest:
        try:
            return RandomSubset(float(rest))
        except ValueError as error:
            raise DescriptionError(f"The agent {text!r} is not understood: {error}") from error
    if kind == "fixed" and rest:
        return FixedOrder([name.strip() for name in rest.split(",")])
    if kind == "file" and rest:
        saved: Policy = load(folder / rest)
        return saved
    plain: dict[str, Callable[[], Policy | Train]] = {
        "all": AcquireAll,
        "none": AcquireNone,
        "dqn": lambda: _dqn(rounds, seed),
        "fitted-q": lambda: _fitted_q(seed),
    }
    if text not in plain:
        raise DescriptionError(f"An agent must be {_KINDS}, but is {text!r}.")
    return plain[text]()


def _dqn(rounds: int, seed: int) -> Train:
    def train(data: Retrospective, classifier: Classifier) -> Policy:
        from ..agents import DQN, Training

        return DQN(Training(n_rounds=rounds), random_state=seed).fit(data, classifier)

    return train


def _fitted_q(seed: int) -> Train:
    def train(data: Retrospective, classifier: Classifier) -> Policy:
        from ..agents import FittedQ

        return FittedQ(random_state=seed).fit(data, classifier)

    return train


def make_agents(
    wanted: dict[str, Policy | Train], train: Retrospective, classifier: Classifier, folder: Path
) -> dict[str, Policy]:
    """Policies, those that learn trained on records with gaps; one that was trained before is read from the folder.

    Agent and classifier learn from the same rows, as in the paper.
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
                warnings.simplefilter("ignore", SeenRowsWarning)  # as the docstring says
                save(agent(train, classifier), file, train.problem)
        out[name] = load(file, train.problem)
    return out
