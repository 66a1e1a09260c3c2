"""What sampled walks add to standard errors."""

import numpy as np
import pandas as pd
import pytest

import afape
from afape.agents.policy import bind
from afape.missingness.known_propensity import KnownPropensity
from afape.propensity.known import BoundKnownPropensity
from afape.propensity.weights import View
from afape.run.plan import Options, make_plan
from afape.run.sampling import sampling_error
from afape.run.warn import warn_of_time
from afape.walk.ground import Ground
from afape.walk.walker import WalkOptions, walk

N_TRAJECTORIES = 6


class Sign:
    def predict(self, values, acquired):
        return (np.nan_to_num(values).sum(axis=1) > 0).astype(int)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 6))
    frame = pd.DataFrame(x, columns=list("abcdef")).assign(y=(x.sum(axis=1) > 0).astype(int))
    problem = afape.Problem({c: [c] for c in "abcdef"}, dict.fromkeys("abcdef", 1.0), "y", 10.0)
    return afape.Retrospective(frame, problem).hide(rng.random((150, 6)) < 0.7)


KNOWN = KnownPropensity(lambda values, required: 0.7 ** required.sum(axis=1))


def test_the_error_of_sampling_is_the_spread_over_seeds(data):
    """The weighted mean cost of sampled walks, over seeds, has the predicted spread."""
    view = View(BoundKnownPropensity(KNOWN, data), data.recorded, np.zeros(6, dtype=bool))
    ground = Ground.recorded(data, bind(afape.RandomSubset(0.5), data.problem), Sign())
    options = WalkOptions(max_states=0, n_trajectories=N_TRAJECTORIES)
    found, predicted = [], []
    for seed in range(200):
        total = 0.0
        tables = list(walk(ground, None, options, seed))
        for table in tables:
            weighted = view.weigh(table)
            cost = np.nan_to_num(table.cost) + table.acquired @ data.problem.prices
            total += weighted.weight @ (table.stop_flow * cost)[weighted.lines]
        found.append(total / len(data))
        predicted.append(sampling_error(data, tables, view, N_TRAJECTORIES))
    spread, error = np.std(found, ddof=1), 1 / np.sqrt(2 * (len(found) - 1))
    assert abs(np.sqrt(np.mean(np.square(predicted))) / spread - 1) < 4 * error


def test_a_note_says_what_sampling_adds(data):
    def run(walk):
        options = {"missingness": afape.MCAR(), "propensity": KNOWN, "estimators": ["ipw-semi"], "walk": walk}
        return afape.evaluate(data, afape.RandomSubset(0.5), Sign(), **options)

    exact, sampled = run(None), run(WalkOptions(max_states=0, n_trajectories=N_TRAJECTORIES))
    assert not any("were sampled" in note for note in exact.assumption)
    (note,) = (note for note in sampled.assumption if "were sampled" in note)
    assert note.startswith("The runs of 150 of 150 rows were sampled, 6 per row")
    assert "so that of ipw-semi is" in note


def test_limits_follow_the_number_of_rows():
    few, many = WalkOptions().within(100, 20), WalkOptions().within(10**6, 20)
    assert (few.max_states, few.n_trajectories) == (4096, 64)
    assert (many.max_states, many.n_trajectories) == (128, 8)
    chosen = WalkOptions(max_states=7, n_trajectories=3)
    assert chosen.within(10**6, 20) == chosen


def test_long_work_is_announced(data):
    plan = make_plan(data, Sign(), afape.MCAR(), Options())
    warn_of_time(plan, 1, 0.1)
    with pytest.warns(afape.warnings.LongRunWarning, match="completed rows for mi and eff-semi; estimators=") as caught:
        warn_of_time(plan, 1, 100.0)
    assert "'mi'" not in str(caught[0].message)
    warn_of_time(make_plan(data, Sign(), afape.MCAR(), Options(estimators=["ipw-semi"])), 1, 1000.0)
