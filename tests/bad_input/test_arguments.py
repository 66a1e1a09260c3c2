"""Names of estimators, paths, and further arguments that are passed on; good values of unusual types."""

import functools

import numpy as np
import pandas as pd
import pytest
from good_input import CountingClassifier, CountingPolicy, World

import afape
from afape import MCAR, agents, benchmark


class Setting:
    """Good arguments; nothing in them may be called, because what is spoiled has to be refused before."""

    def __init__(self, folder):
        self.world, self.folder = World(), folder
        self.data = self.world.data()
        self.judge, self.policy = CountingClassifier(), CountingPolicy()
        options = {"missingness": MCAR(), "estimators": ["ipw-semi", "cc"]}
        score = {"risk": afape.score(_Sure())}
        by = np.where(np.arange(len(self.data)) % 2, "u", "v")
        data, judge = self.data, CountingClassifier()
        self.found = afape.evaluate(data, CountingPolicy(), judge, outcomes=score, by=by, **options)
        both = {"some": CountingPolicy(), "none": afape.AcquireNone()}
        self.compared = afape.compare(data, both, judge, **options)

    def optimize(self, **spoiled):
        good = {"data": self.data, "family": [self._train], "classifier": self.judge, "missingness": MCAR()}
        return afape.optimize(**(good | spoiled))

    def compare_training(self, **spoiled):
        good = {"agent": agents.FittedQ, "train": self.data, "test": self.data, "classifier": self.judge}
        return afape.optimisation.compare_training(**(good | {"missingness": MCAR()} | spoiled))

    def save(self, **spoiled):
        good = {"thing": afape.AcquireAll(), "path": self.folder / "a.afape", "problem": self.data.problem}
        return afape.save(**(good | spoiled))

    def _train(self, data):
        raise AssertionError("trained before the arguments were checked")


class _Sure:
    def predict_proba(self, values, acquired):
        return np.tile([0.3, 0.7], (len(values), 1))


class _Method:
    """Nothing may ask it."""

    def act(self, **tensors):
        raise AssertionError("asked before the arguments were checked")


@pytest.fixture(scope="module")
def setting(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arguments")
    found = Setting(folder)
    afape.save(afape.AcquireAll(), folder / "saved.afape", found.data.problem)
    return found


BY_ESTIMATOR = {
    "metrics": lambda s, name: s.found.metrics(name),
    "parts": lambda s, name: s.found.parts(name),
    "price_plane": lambda s, name: s.found.price_plane({"b": (0, 1)}, name),
    "subgroup_differences": lambda s, name: s.found.subgroup_differences(name),
    "Comparison.metrics": lambda s, name: s.compared.metrics(name),
    "metric_differences": lambda s, name: s.compared.metric_differences(name),
    "Comparison.price_plane": lambda s, name: s.compared.price_plane({"b": (0, 1)}, name),
    "frontier": lambda s, name: s.compared.frontier(name),
    "estimates": lambda s, name: s.compared.estimates(name),
    "differences": lambda s, name: s.compared.differences(name),
    "ranking": lambda s, name: s.compared.ranking(name),
    "plot": lambda s, name: s.compared.plot(name),
}


@pytest.mark.parametrize("ask", BY_ESTIMATOR.values(), ids=BY_ESTIMATOR)
def test_an_estimator_is_a_name_of_one_that_is_there(setting, ask):
    for unknown in ("nosuch", ""):
        with pytest.raises(KeyError, match=rf"No estimator '{unknown}' here. The estimators are \['ipw-semi', 'cc'\]"):
            ask(setting, unknown)
    for odd in (3, True, False, [], {}, np.array(["cc", "ipw-semi"])):
        with pytest.raises(
            TypeError, match="'estimator' must be the name of an estimator, or None for the best, but is"
        ):
            ask(setting, odd)


def test_paths_that_lead_nowhere(setting, tmp_path):
    (tmp_path / "text").write_bytes(b"\xff\xfe rules")
    readers = {
        afape.load: "a file that afape.save wrote",
        agents.Guideline.from_file: "a text file with the rules",
    }
    for read, what in readers.items():
        with pytest.raises(FileNotFoundError, match=f"'path' must be {what}, but there is no file"):
            read(tmp_path / "none")
        with pytest.raises(ValueError, match=f"'path' must be {what}, but .* is a folder"):
            read(tmp_path)
    with pytest.raises(ValueError, match=r"'path' must be a text file in UTF-8, but .*text' is not"):
        agents.Guideline.from_file(tmp_path / "text")
    for write in (setting.save, setting.found.to_html):
        with pytest.raises(FileNotFoundError, match="'path' must be in a folder that exists, but there is no"):
            write(path=tmp_path / "no" / "file")
        with pytest.raises(ValueError, match=r"'path' must be the path of a file, but .* is a folder"):
            write(path=tmp_path)
    with pytest.raises(ValueError, match=r"'folder' must be the path of a folder, but .*text' is a file"):
        benchmark.reproduce("synthetic-mar", tmp_path / "text")


def test_further_arguments_are_those_of_compare(setting):
    for attempt in (setting.optimize, setting.compare_training):
        with pytest.raises(TypeError, match=r"afape.compare has no option 'nosuch'"):
            attempt(nosuch=1)
        with pytest.raises(TypeError, match="'progress' must be a function"):
            attempt(progress="yes")
    assert setting.judge.calls == 0


@pytest.mark.filterwarnings("ignore::afape.warnings.SeenRowsWarning")  # agents are judged on their training rows
def test_what_is_valid_is_taken(setting, tmp_path):
    """Generators, numpy's numbers and texts for paths, wherever a list, a number or a path is meant."""
    problem = setting.data.problem
    function = agents.from_function(lambda row: None, columns=(c for c in setting.data.columns))
    assert all(function.bind(problem) is not None for _ in range(2))  # the columns are not used up
    policy = agents.Guideline("b", columns=(c for c in setting.data.columns))
    assert policy.bind(problem).probabilities(setting.data.values, setting.data.recorded).shape == (40, 4)
    bound = agents.from_afabench(_Method(), (g for g in ("b", 2)), features=problem.feature_columns).bind(problem)
    assert bound.settings.selections == ["b", 2]
    afape.save(afape.AcquireAll(), str(tmp_path / "a.afape"), problem, unsafe=np.False_)
    assert isinstance(afape.load(str(tmp_path / "a.afape"), trusted=iter(())), afape.AcquireAll)
    assert len(setting.found.calibration(bins=pd.Series([0.0, 0.5, 1.0])).table) == 2
    assert len(setting.found.calibration(bins=np.int64(4)).table) == 4
    assert len(setting.compared.price_plane({"b": np.array([0, 1])}, points=np.int64(3)).table) == 3
    assert setting.compared.frontier(label="yes").effect == "'yes' and predicted so"
    assert benchmark.read_description(str(benchmark.describe("heloc"))).name == "heloc"
    assert benchmark.Settings(seed=np.int64(1), data=str(tmp_path)).data == tmp_path
    shares = (p for p in (0.0, 1.0))
    chosen = afape.optimize(
        setting.data,
        afape.RandomSubset,
        CountingClassifier(),
        missingness=MCAR(),
        parameters=shares,
        estimators=["ipw-semi"],
    )
    assert len(chosen.curve) == 2
    trained = functools.partial(agents.FittedQ, n_iterations=1, max_states=50)
    found = afape.optimisation.compare_training(
        trained, setting.data, setting.data, CountingClassifier(), missingness=MCAR(), estimators=["cc"]
    )
    assert list(found.evaluations) == ["blocked", "all actions", "weighted"]
