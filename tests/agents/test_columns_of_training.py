"""An agent finds columns by their position, so it refuses records with other columns; prices may differ."""

import numpy as np
import pandas as pd
import pytest
from learned import TINY

import afape
from afape import agents
from afape.agents.policy import bind_to_records

GROUPS = {"a": ["a"], "uw": ["u", "w"], "c": ["c"]}
PRICES = {"uw": 0.2, "c": 0.3}


def records(groups=GROUPS, prices=PRICES, seed=0, n=300, **options):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 4)), columns=["a", "u", "w", "c"])
    frame["y"] = np.where(frame["u"] - 0.5 * frame["w"] > 0, "yes", "no")
    if "categories" in options:
        frame["c"] = np.where(frame["c"] > 0, "high", "low")
    problem = afape.Problem(groups, prices, "y", 5.0, **options)
    return afape.Retrospective(frame, problem)


class ByU:
    """Predicts from u, whichever column that is, if it is known."""

    def predict(self, values, acquired):
        return np.nan_to_num(values[:, 1] > 0).astype(int)


def network(kind):
    return getattr(agents, kind)(agents.Training(**TINY))


AGENTS = {
    "tree": lambda: agents.CostSensitiveTree(min_rows=20),
    "naive bayes": agents.CostSensitiveNaiveBayes,
    "information": lambda: agents.ValueOfInformation(n_draws=2),
    "look-ahead": lambda: agents.LookAhead(n_draws=2),
    "clusters": agents.ClusterAgent,
    "fitted q": lambda: agents.FittedQ(max_states=500),
    "dqn": lambda: network("DQN"),
    "cwcf": lambda: network("CwCF"),
    "joint": lambda: network("JointDQN"),
}


@pytest.fixture(scope="module", params=AGENTS)
def agent(request):
    arguments = () if request.param in ("cwcf", "joint") else (ByU(),)
    return AGENTS[request.param]().fit(records(), *arguments)


OTHERS = {
    "order": (
        records({**GROUPS, "uw": ["w", "u"]}, seed=1),
        r"was trained on the columns \['a', 'u', 'w', 'c'\].*order",
    ),
    "owner": (records({"a": ["a"], "uw": ["u"], "c": ["w", "c"]}, seed=1), "the column 'w' in the group 'uw'"),
    "levels": (records(seed=1, categories={"c": ["low", "high"]}), "Declare 'categories'"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_an_agent_refuses_records_with_other_columns_also_after_loading(agent, other, tmp_path):
    data, match = OTHERS[other]
    afape.save(agent, tmp_path / "agent.afape", records().problem, unsafe=True)
    for policy in (agent, afape.load(tmp_path / "agent.afape", unsafe=True), agents.StepBudget(agent, 1)):
        with pytest.raises(ValueError, match=match):
            afape.true_cost(data, policy, ByU())
        with pytest.raises(ValueError, match=match):
            afape.evaluate(data, policy, ByU(), missingness=afape.MCAR())


def test_an_agent_accepts_other_prices(agent):
    bind_to_records(agent, records(prices={"uw": 0.4, "c": 0.1}, seed=1))


def test_an_agent_that_classifies_refuses_labels_with_other_codes():
    agent = agents.CostSensitiveNaiveBayes().fit(records(), ByU())
    with pytest.raises(ValueError, match="equal codes mean different labels"):
        afape.true_cost(records(seed=1, classes=["yes", "no"]), agents.AcquireAll(), agent)


def test_a_model_of_stable_baselines_refuses_other_columns_if_it_has_its_environment():
    sb3 = pytest.importorskip("stable_baselines3")
    from afape.gym import AcquisitionEnv

    policy = agents.from_sb3(sb3.DQN("MlpPolicy", AcquisitionEnv(records(), ByU()), seed=0))
    afape.true_cost(records(seed=1), policy, ByU())
    with pytest.raises(ValueError, match="was trained on the columns"):
        afape.true_cost(OTHERS["order"][0], policy, ByU())


@pytest.mark.parametrize(
    "policy",
    [
        agents.from_columns(lambda row: np.full(len(row["a"]), None), ["a", "w", "u", "c"]),
        agents.from_function(lambda row: None, ["a", "w", "u", "c"]),
        agents.Guideline("if u > 0: c", ["a", "w", "u", "c"]),
    ],
)
def test_a_rule_refuses_records_whose_columns_are_not_those_it_was_given(policy):
    with pytest.raises(ValueError, match=r"Pass the data\.columns of these records"):
        afape.true_cost(records(), policy, ByU())
