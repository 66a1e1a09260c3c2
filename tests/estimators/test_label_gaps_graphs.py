"""Labels with gaps under a graph: enumerated worlds, known propensities, a label that decides about other recordings."""

import numpy as np
import pandas as pd
import pytest
from label_worlds import ByLabel, Chain, Rooted, RootedChain
from numpy.testing import assert_allclose
from scipy.special import expit
from sklearn.tree import DecisionTreeRegressor

import afape
from afape.estimators.eff.completion import Completer
from afape.estimators.eff.mixture import Mixture
from afape.missingness import GraphMechanism

EXACT = afape.LearnedValues(DecisionTreeRegressor(random_state=0))  # means of equal lines
WRONG = afape.LearnedValues(DecisionTreeRegressor(max_depth=1, random_state=0))
NAMES = ["ipw-semi-miss", "drl-semi-miss"]
pytestmark = pytest.mark.filterwarnings("ignore::afape.warnings.AfapeWarning")
seeds = pytest.mark.parametrize("seed", range(2))


def known_in(law):
    return afape.KnownPropensity(law.known, labels=isinstance(law, ByLabel))


def assert_right(found, law, names, rtol=1e-9):
    for name in names:
        costs = [found[name][target].value for target in ("acquisition", "misclassification")]
        assert_allclose(costs, law.true_costs(), rtol=rtol)


@seeds
@pytest.mark.parametrize("kind", [Chain, RootedChain, ByLabel])
@pytest.mark.parametrize("normalize", [True, False])
def test_known_propensities(kind, seed, normalize):
    law = kind(seed)
    graph, options = afape.MNAR(graph=law.graph), {"normalize": normalize}
    for values in (EXACT, WRONG):
        assert_right(law.evaluated(NAMES, graph, propensity=known_in(law), values=values, **options), law, NAMES)
    if kind is not ByLabel:  # where recording depends on the label, nothing is beyond it
        wrong = afape.KnownPropensity(law.beyond_wrong)
        found = law.evaluated(NAMES, graph, propensity=wrong, values=EXACT, **options)
        assert_right(found, law, ["drl-semi-miss"])
        assert abs(found["ipw-semi-miss"]["misclassification"].value / law.true_costs()[1] - 1) > 1e-3


@seeds
@pytest.mark.parametrize("kind", [RootedChain, ByLabel])
def test_learned_propensities(kind, seed):
    law = kind(seed)
    assert_right(law.evaluated(NAMES, afape.MNAR(graph=law.graph)), law, NAMES, rtol=1e-6)


@seeds
@pytest.mark.parametrize("kind", [Chain, RootedChain, ByLabel, Rooted])
@pytest.mark.parametrize("hidden", [(0.0, 1.0, (1.0, 0.0, 0.0)), (1.0, 0.0, (0.0, 0.0, 1.0))])
def test_the_efficient_estimator_with_any_conditional_means(kind, seed, hidden, monkeypatch):
    """Hidden groups and labels are always completed with the same, wrong values."""
    b, c, label = hidden

    def completed(self, t, row, table, position):
        shown = (t | self.known.groups)[self.data.column_group]
        return np.where(shown, np.nan_to_num(self.data.values[row]), [0.0, b, c, *label]), np.full(len(row), -1)

    shares = np.random.default_rng(seed).dirichlet(np.ones(9))

    def left_out(mixture):
        own = shares[: len(mixture.shares)]
        return np.tile(own / own.sum(), (20, 1))

    monkeypatch.setattr(Completer, "_completed", completed)
    monkeypatch.setattr(Mixture, "left_out", property(left_out))
    law = kind(seed)
    name, missingness = ("eff-semi", afape.MCAR()) if kind is Rooted else ("eff-semi-miss", afape.MNAR(graph=law.graph))
    found = law.evaluated([name], missingness, propensity=known_in(law), values=WRONG, normalize=False)
    assert_right(found, law, [name])


@seeds
def test_double_robustness_from_a_root(seed):
    law, wrong = Rooted(seed), afape.KnownPropensity(lambda values, required: 0.8 ** required.sum(axis=1))
    assert_right(law.evaluated(["drl-semi"], afape.MCAR(), propensity=wrong, values=EXACT), law, ["drl-semi"])


def test_a_known_propensity_must_use_a_label_that_recording_depends_on():
    law = ByLabel(0)
    plain = afape.KnownPropensity(lambda values, required: np.ones(len(values)))
    with pytest.raises(ValueError, match=r"must use the label.*labels=True"):
        law.evaluated(NAMES, afape.MNAR(graph=law.graph), propensity=plain)


def test_the_true_propensity_of_a_mechanism_in_which_the_label_decides():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=200), "b": rng.normal(size=200), "y": rng.integers(0, 2, size=200)})
    problem = afape.Problem({"a": ["a"], "b": ["b"]}, {"b": 1.0}, "y", 5.0, [0, 1])
    whole = afape.Retrospective(table, problem)
    mechanism = GraphMechanism("y -> R_b; a -> R_y", {"b": -0.5, "y": 0.3}, {"b": {"y": 2.0}, "y": {"a": 0.5}})
    data, known = mechanism.hide(whole, 0), mechanism.propensity(whole)
    assert known.labels
    needed = np.tile([False, True, True], (200, 1))
    p = known.function(whole.values, needed, whole.labels)
    assert_allclose(p, expit(-0.5 + 2.0 * table["y"]) * expit(0.3 + 0.5 * table["a"]), rtol=1e-12)
    needed[:, 1] = False  # the label alone: in rows without one too
    assert_allclose(known.function(data.values, needed, data.labels), expit(0.3 + 0.5 * table["a"]), rtol=1e-12)
    needed[:, 1] = True
    assert np.isnan(known.function(data.values, needed, data.labels)[data.labels < 0]).all()
