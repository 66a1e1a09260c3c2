"""Arguments of everything beside `evaluate`: each nonsense value is refused by name, before any work."""

import functools

import numpy as np
import pandas as pd
import pytest
from good_input import INF, NAN, CountingClassifier, CountingPolicy, World, frame

import afape
from afape import MCAR, agents, benchmark, datasets

NUMBERS = {
    "text": "many",
    "NaN": NAN,
    "infinite": INF,
    "negative": -1,
    "True": True,
    "numpy's True": np.True_,
    "list": [],
    "array": np.array([1, 2]),
    "complex": 1j,
}
COUNTS = NUMBERS | {"half": 0.5, "None": None}
SEEDS = NUMBERS | {"half": 0.5}
FLAGS = {"text": "False", "number": 1, "list": [], "array": np.array([True, False]), "NaN": NAN}
NAMES = {"unknown": "nosuch", "number": 3, "True": True, "list": [], "array": np.array(["a", "b"]), "mapping": {}}
TEXTS = {"text": "b", "number": 3, "mapping": {}, "nested": [["b"]], "numbers": [1, 2], "gap": [None], "True": True}
THINGS = {"number": 3, "text": "x", "list": [], "table": frame(), "object": object()}
REQUIRED = THINGS | {"None": None}
PATHS = {"number": 3, "list": [], "True": True, "bytes": b"abc", "empty": ""}
RANGES = {
    "negative": {"b": (-1, 2)},
    "NaN": {"b": (0, NAN)},
    "infinite": {"b": (0, INF)},
    "reversed": {"b": (2, 1)},
    "number": {"b": 3},
    "texts": {"b": ("a", "c")},
    "text": {"b": "05"},
    "flags": {"b": (False, True)},
    "unknown": {"nosuch": (0, 1)},
    "free": {"a": (0, 1)},
    "three": {"b": (0, 1), "cd": (0, 1), "misclassification": (0, 1)},
}
COSTS = {
    "negative": {"b": -1, "cd": 1},
    "NaN": {"b": NAN, "cd": 1},
    "infinite": {"b": INF, "cd": 1},
    "too few": {"b": 1},
    "text": {"b": "1", "cd": 1},
    "True": {"b": True, "cd": 1},
    "free": {"a": 1, "b": 1, "cd": 1},
}
ENDS = {"one end": [0.0], "descending": [1, 0], "texts": ["b", "c"], "NaN": [0, NAN, 1], "flags": [False, True]}


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

    def fit(self, agent, **spoiled):
        return agent.fit(**({"data": self.data, "classifier": self.judge} | spoiled))

    def save(self, **spoiled):
        good = {"thing": afape.AcquireAll(), "path": self.folder / "a.afape", "problem": self.data.problem}
        return afape.save(**(good | spoiled))

    def load(self, **spoiled):
        return afape.load(**({"path": self.folder / "saved.afape", "problem": self.data.problem} | spoiled))

    def bound(self, policy):
        return policy.bind(self.data.problem)

    def described(self):
        return benchmark.read_description(benchmark.describe("synthetic-mar"), quick=True)

    def results(self, **spoiled):
        columns = ["rows", "draw", "truth", "estimate", "std_error", "lower", "upper", "ess", "unsupported"]
        line = dict.fromkeys(columns, 1.0) | {"agent": "a", "estimator": "cc", "target": "total", "support": ""}
        good = {"results": pd.DataFrame([line | {"run": "convergence"}])}
        return benchmark.data_efficiency(**(good | spoiled))

    def _train(self, data):
        raise AssertionError("trained before the arguments were checked")


class _Sure:
    def predict_proba(self, values, acquired):
        return np.tile([0.3, 0.7], (len(values), 1))


class _Method:
    """Nothing may ask it."""

    def act(self, **tensors):
        raise AssertionError("asked before the arguments were checked")


class _Network:
    policy, observation_space, q_net = object(), object(), object()


@pytest.fixture(scope="module")
def setting(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arguments")
    found = Setting(folder)
    afape.save(afape.AcquireAll(), folder / "saved.afape", found.data.problem)
    return found


def agent_with(cls):
    """Agents of scikit-learn's kind check their arguments when they are fitted, the others when they are made."""
    return lambda s, **spoiled: s.fit(cls(**spoiled))


# what is called, its arguments, and the values that each must refuse
CALLS = {
    "optimize": (
        Setting.optimize,
        {
            "data": REQUIRED,
            "family": {"number": 3, "empty": [], "text": "x", "no policies": [3], "None": None},
            "classifier": REQUIRED,
            "missingness": REQUIRED,
            "parameters": {"list without function": [0.5]},
            "holdout": COUNTS | {"zero": 0, "one": 1, "half": 2},
            "n_splits": COUNTS | {"one": 1},
            "random_state": SEEDS,
            "estimators": {"text": "cc", "empty": [], "nested": [["cc"]], "unknown": ["nosuch"]},
            "confidence": COUNTS | {"half": 2},
        },
    ),
    "parameters": (
        lambda s, **spoiled: s.optimize(family=afape.RandomSubset, **spoiled),
        {"parameters": {"text": "ab", "number": 3, "mapping": {0.5: 1}, "twice": [0.5, 0.5]}},
    ),
    "compare_training": (
        Setting.compare_training,
        {
            "agent": REQUIRED | {"made of nothing": lambda targets: 3, "no targets": afape.AcquireAll},
            "train": REQUIRED,
            "test": REQUIRED,
            "classifier": REQUIRED,
            "missingness": REQUIRED | {"graph": afape.MNAR(graph="a -> R_b; R_cd")},
            "estimators": {"text": "cc", "empty": [], "unknown": ["nosuch"]},
        },
    ),
    "training_weights": (
        lambda s, **k: afape.optimisation.training_weights(**({"data": s.data, "missingness": MCAR()} | k)),
        {"data": REQUIRED, "missingness": REQUIRED, "propensity": THINGS},
    ),
    "save": (
        Setting.save,
        {
            "thing": REQUIRED,
            "path": PATHS | {"None": None},
            "problem": REQUIRED,
            "unsafe": FLAGS | {"None": None},
        },
    ),
    "load": (
        Setting.load,
        {
            "path": PATHS | {"None": None},
            "problem": THINGS,
            "trusted": TEXTS | {"None": None},
            "check_versions": FLAGS | {"None": None},
            "unsafe": FLAGS | {"None": None},
        },
    ),
    "ClusterAgent": (
        agent_with(agents.ClusterAgent),
        {"n_clusters": COUNTS | {"zero": 0}, "min_rows": COUNTS, "max_sets": COUNTS, "random_state": SEEDS},
    ),
    "CostSensitiveNaiveBayes": (
        agent_with(agents.CostSensitiveNaiveBayes),
        {"n_bins": COUNTS | {"one": 1}, "min_leaf": COUNTS, "smoothing": NUMBERS, "random_state": SEEDS},
    ),
    "CostSensitiveTree": (
        agent_with(agents.CostSensitiveTree),
        {"max_depth": COUNTS, "min_rows": COUNTS | {"zero": 0}, "min_z": NUMBERS},
    ),
    "ValueOfInformation": (
        agent_with(agents.ValueOfInformation),
        {"n_draws": COUNTS | {"zero": 0}, "min_leaf": COUNTS, "estimator": THINGS, "random_state": SEEDS},
    ),
    "FittedQ": (
        lambda s, **k: agents.FittedQ(**k),
        {
            "regressor": THINGS,
            "n_iterations": NUMBERS | {"zero": 0},
            "max_states": COUNTS | {"zero": 0},
            "epsilon": NUMBERS | {"above one": 1.5},
            "price_multiplier": NUMBERS,
            "targets": NAMES | {"None": None},
            "random_state": COUNTS | {"too large": 10**30},
        },
    ),
    "Training": (
        lambda s, **k: agents.Training(**k),
        {
            "hidden": {"text": "16", "empty": [], "zero": [0], "half": [0.5], "number": 16, "True": [True]},
            "optimizer": NAMES | {"None": None},
            "learning_rate": NUMBERS | {"zero": 0},
            "n_rounds": COUNTS | {"zero": 0},
            "batch_size": COUNTS | {"zero": 0},
            "explore_from": NUMBERS | {"above one": 2},
            "pretraining": COUNTS,
        },
    ),
    **{
        f"{agent.__name__}.fit": (
            lambda s, agent=agent, **k: s.fit(agent(), **k),
            {"data": REQUIRED, "classifier": REQUIRED},
        )
        for agent in (
            agents.ClusterAgent,
            agents.CostSensitiveNaiveBayes,
            agents.CostSensitiveTree,
            agents.ValueOfInformation,
            agents.FittedQ,
        )
    },
    "weights": (lambda s, **k: s.fit(agents.FittedQ(), **k), {"weights": THINGS | {"class": dict}}),
    "from_function": (
        lambda s, **k: s.bound(agents.from_function(**({"function": lambda row: None} | k))),
        {"function": REQUIRED, "columns": TEXTS | {"unknown": ["nosuch"]}},
    ),
    "from_columns": (
        lambda s, **k: s.bound(agents.from_columns(**({"function": lambda row: None} | k))),
        {"function": REQUIRED, "columns": TEXTS | {"unknown": ["nosuch"]}},
    ),
    "Guideline": (
        lambda s, **k: s.bound(agents.Guideline(**({"text": "b"} | k))),
        {"text": {k: v for k, v in REQUIRED.items() if k != "text"}, "columns": TEXTS | {"unknown": ["nosuch"]}},
    ),
    "Guideline.from_file": (lambda s, **k: agents.Guideline.from_file(**k), {"path": PATHS | {"None": None}}),
    "from_afabench": (
        lambda s, **k: s.bound(agents.from_afabench(**({"method": _Method()} | k))),
        {
            "method": {k: v for k, v in REQUIRED.items() if k != "table"},
            "selections": {"text": "b", "number": 3, "empty": [], "unknown": ["nosuch"], "index": [9], "True": [True]},
            "repeated": NAMES | {"None": None},
            "n_draws": COUNTS | {"zero": 0},
        },
    ),
    "classifier_from_afabench": (lambda s, **k: agents.classifier_from_afabench(**k), {"classifier": REQUIRED}),
    "from_sb3": (
        lambda s, **k: agents.from_sb3(**({"model": _Network()} | k)),
        {"model": REQUIRED, "deterministic": FLAGS | {"None": None}, "epsilon": NUMBERS | {"above one": 2}},
    ),
    "StepBudget": (
        lambda s, **k: agents.StepBudget(**({"policy": s.policy, "n_steps": 1} | k)),
        {"policy": REQUIRED, "n_steps": COUNTS},
    ),
    "reprice": (
        lambda s, **k: s.found.reprice(**k),
        {"costs": THINGS | COSTS, "misclassification_cost": NUMBERS | {"shape": np.ones((3, 3))}},
    ),
    "Comparison.reprice": (lambda s, **k: s.compared.reprice(**k), {"costs": THINGS | COSTS}),
    "price_plane": (
        lambda s, **k: s.compared.price_plane(**({"prices": {"b": (0, 5)}} | k)),
        {"prices": REQUIRED | RANGES, "points": COUNTS | {"one": 1}},
    ),
    "frontier": (lambda s, **k: s.compared.frontier(**k), {"label": NAMES}),
    "auc": (lambda s, **k: s.found.auc(**k), {"score": NAMES, "label": NAMES}),
    "calibration": (
        lambda s, **k: s.found.calibration(**k),
        {"score": NAMES, "label": NAMES, "bins": COUNTS | ENDS | {"array": np.array([2, 1]), "zero": 0}},
    ),
    "subgroup_differences": (lambda s, **k: s.found.subgroup_differences(**k), {"target": NAMES | {"None": None}}),
    "imputation_check": (lambda s, **k: s.found.imputation_check(**k), {"target": NAMES | {"None": None}}),
    "differences": (lambda s, **k: s.compared.differences(**k), {"target": NAMES | {"None": None}}),
    "ranking": (lambda s, **k: s.compared.ranking(**k), {"target": NAMES | {"None": None}}),
    "plot": (lambda s, **k: s.compared.plot(**k), {"ax": THINGS, "target": NAMES}),
    "to_html": (
        lambda s, **k: s.found.to_html(**({"path": s.folder / "page.html"} | k)),
        {
            "path": PATHS | {"None": None},
            "sensitivity": FLAGS,
            "notes": TEXTS | {"None": None},
            "details": {"text": "x", "number": 3, "list": ["x"], "True": True},
        },
    ),
    "load_heloc": (
        lambda s, **k: datasets.load_heloc(**k),
        {"path": {k: v for k, v in PATHS.items() if k != "empty"}, "codes": NAMES, "empty_rows": NAMES},
    ),
    "load_income": (lambda s, **k: datasets.load_income(**k), {"unknown": NAMES | {"None": None}}),
    "describe": (lambda s, **k: benchmark.describe(**k), {"name": NAMES | {"None": None}}),
    "read_description": (
        lambda s, **k: benchmark.read_description(**({"file": benchmark.describe("heloc")} | k)),
        {"file": PATHS | {"None": None}, "quick": FLAGS | {"None": None}},
    ),
    "reproduce": (
        lambda s, **k: benchmark.reproduce(**({"name": "synthetic-mar", "folder": s.folder / "out"} | k)),
        {
            "name": NAMES | {"None": None},
            "folder": PATHS | {"None": None},
            "settings": THINGS,
            "quick": FLAGS,
            "draws": NUMBERS | {"one": 1, "half": 2.5},
            "tell": THINGS,
        },
    ),
    "run_experiment": (
        lambda s, **k: benchmark.run_experiment(**({"description": s.described(), "folder": s.folder / "out"} | k)),
        {"description": REQUIRED, "folder": PATHS | {"None": None}, "settings": THINGS, "tell": THINGS},
    ),
    "Settings": (
        lambda s, **k: benchmark.Settings(**k),
        {"seed": COUNTS, "jobs": COUNTS | {"zero": 0}, "data": PATHS, "command": {"number": 3, "None": None}},
    ),
    "reduced": (lambda s, **k: s.described().reduced(**k), {"draws": COUNTS | {"one": 1}}),
    "data_efficiency": (
        Setting.results,
        {"results": REQUIRED, "run": NAMES | {"None": None}, "target": NAMES | {"None": None}, "seed": COUNTS},
    ),
    "summarise_results": (lambda s, **k: benchmark.summarise_results(**k), {"results": REQUIRED}),
}
CASES = {
    f"{call}, {argument}: {what}": (attempt, argument, value)
    for call, (attempt, arguments) in CALLS.items()
    for argument, values in arguments.items()
    for what, value in values.items()
}


@pytest.mark.parametrize(("attempt", "argument", "value"), CASES.values(), ids=CASES)
def test_nonsense_is_refused_by_name_before_any_work(setting, attempt, argument, value):
    with pytest.raises((TypeError, ValueError)) as refusal:
        attempt(setting, **{argument: value})
    text = str(refusal.value)
    assert f"'{argument}'" in text
    assert " must " in text
    assert (setting.judge.calls, setting.policy.calls) == (0, 0)


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


def test_what_is_valid_is_taken(setting, tmp_path):
    """Generators, numpy's numbers and texts for paths, wherever a list, a number or a path is meant."""
    problem = setting.data.problem
    function = agents.from_function(lambda row: None, columns=(c for c in setting.data.columns))
    assert all(function.bind(problem) is not None for _ in range(2))  # the columns are not used up
    policy = agents.Guideline("b", columns=(c for c in setting.data.columns))
    assert policy.bind(problem).probabilities(setting.data.values, setting.data.recorded).shape == (40, 4)
    assert agents.from_afabench(_Method(), selections=(g for g in ("b", 2))).bind(problem).selections == ["b", 2]
    afape.save(afape.AcquireAll(), str(tmp_path / "a.afape"), problem, unsafe=np.False_)
    assert isinstance(afape.load(str(tmp_path / "a.afape"), trusted=iter(())), afape.AcquireAll)
    assert len(setting.found.calibration(bins=pd.Series([0.0, 0.5, 1.0])).table) == 2
    assert len(setting.found.calibration(bins=np.int64(4)).table) == 4
    assert len(setting.compared.price_plane({"b": np.array([0, 1])}, points=np.int64(3)).table) == 3
    assert setting.compared.frontier(label="yes").effect == "of 'yes' found"
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
