"""Every argument of every public callable refuses what it cannot use, by name, before any work."""

import inspect
import signal
import warnings

import gymnasium
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from every_callable import WRONG, Rude, RudeName, fault_of, may_be_accepted, public_callables
from good_input import INF, NAN, CountingClassifier, CountingPolicy, World, frame
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import afape
from afape import MCAR, agents, benchmark
from afape._arguments import shown

CALLABLES = public_callables()


class Sure:
    """A classifier with probabilities."""

    def predict(self, values, acquired):
        return np.ones(len(values), dtype=int)

    def predict_proba(self, values, acquired):
        return np.tile([0.3, 0.7], (len(values), 1))


class Method:
    def act(self, **tensors):
        raise AssertionError("asked before the arguments were checked")


class Tensors:
    def get_all_data(self):
        return np.zeros((6, 2)), np.array([0, 1] * 3)


class Stopping:
    def act(self, masked_features, **tensors):
        return np.zeros((len(masked_features), 1), dtype=int)

    def predict(self, masked_features, **tensors):
        return np.tile([0.3, 0.7], (len(masked_features), 1))


class Network:
    policy, observation_space, q_net = object(), object(), object()
    action_space = type("Space", (), {"n": 4})


class Good:
    """Good arguments by name; objects whose methods are called, by class."""

    def __init__(self, folder):
        self.world, self.folder = World(), folder
        self.data, self.complete = self.world.data(), self.world.data(frame().fillna(0.0))
        self.policy, self.classifier = CountingPolicy(), CountingClassifier()
        options = {"missingness": MCAR(), "estimators": ["ipw-semi", "cc"]}
        by = np.where(np.arange(len(self.data)) % 2, "u", "v")
        score = {"risk": afape.score(Sure())}
        found = afape.evaluate(self.data, CountingPolicy(), Sure(), outcomes=score, by=by, **options)
        both = {"some": CountingPolicy(), "none": afape.AcquireNone()}
        compared = afape.compare(self.data, both, Sure(), **options)
        weak = afape.sensitivity(self.data, both, Sure(), missingness=MCAR(), bootstrap=2)
        description = benchmark.read_description(benchmark.describe("synthetic-mar"), quick=True)
        afape.save(afape.AcquireAll(), folder / "saved.afape", self.data.problem)
        (folder / "rules.txt").write_text("b")
        frame().to_csv(folder / "table.csv", index=False)
        summary = afape.Summary.of(compared, min_cell=0)
        summary.save(folder / "site.summary")
        scanned = afape.scan(folder / "table.csv", self.data.problem)
        self.objects = {
            "Evaluation": found, "Comparison": compared, "Sensitivity": weak, "Description": description,
            "Frontier": compared.frontier(), "PricePlane": compared.price_plane({"b": (0, 5)}, points=3),
            "BudgetCurve": afape.budget_curve(self.data, CountingPolicy(), Sure(), [1], missingness=MCAR(), estimator="cc"),
            "BenchBundle": agents.from_afabench_bundle(Stopping(), Tensors()),
            "MissingnessCheck": afape.check_missingness(self.data, MCAR()),
            "Parts": found.parts(), "Support": found.support, "Estimate": found["cc"]["total"],
            "Scan": scanned, "Summary": summary, "Sites": afape.combine({"u": summary, "v": summary}),
            "Bounds": afape.Bounds.between(found["cc"]["total"], found["ipw-semi"]["total"], 0.1),
            "Retrospective": self.data, "MGraph": afape.MGraph("a -> R_b; R_cd"), "MNAR": afape.MNAR(graph="a -> R_b; R_cd"),
            "ImputedClassifier": afape.ImputedClassifier(DecisionTreeClassifier()),
            "IndependentMechanism": afape.missingness.IndependentMechanism({"b": 0.5}),
            "LogisticMechanism": afape.missingness.LogisticMechanism({"b": 0.5}),
            "BlockMechanism": afape.missingness.BlockMechanism({"b": ["b"]}),
            "GraphMechanism": afape.missingness.GraphMechanism("a -> R_b; R_cd", {"b": 0.5, "cd": 0.1}),
        }  # fmt: skip
        self.common = {
            "data": self.data, "policy": self.policy, "classifier": self.classifier, "missingness": MCAR(), "frame": frame(),
            "policies": {"p": self.policy}, "problem": self.data.problem, "family": [self.train], "path": folder / "new",
            "groups": {"a": ["a"], "b": ["b"]}, "costs": {"b": 1.0}, "label": "y", "misclassification_cost": 5.0,
            "thing": afape.AcquireAll(), "function": lambda *a: None, "given": ["a"], "p": 0.5, "n_steps": 1,
            "text": "b", "budget": 1.0,
            "agent": agents.FittedQ, "train": self.data, "test": self.data, "method": Method(), "model": Network(),
            "columns": {"new": ["a", "b"]}, "blocks": {"x": ["b"]}, "graph": "a -> R_b; R_cd", "shares": {"b": 0.5},
            "intercepts": {"b": 0.0}, "name": "synthetic-mar", "folder": folder / "out", "description": description,
            "results": self.results(), "prices": {"b": (0, 5)}, "group": "b", "file": benchmark.describe("heloc"),
            "found": found, "Lambda": 1.0, "a": "some", "n_episodes": 1, "action": 1, "actions": [1], "coefficients": [1.0],
            "files": folder / "table.csv", "result": compared,
        }  # fmt: skip
        cheap, env = {"estimators": ["ipw-semi"]}, {"data": self.data, "classifier": self.classifier}
        self.special = {
            "evaluate": cheap, "compare": cheap, "optimize": cheap, "compare_training": cheap | {"agent": self.made},
            "true_cost": {"data": self.complete}, "true_parts": {"data": self.complete}, "sensitivity": {"bootstrap": 0},
            "FixedOrder": {"groups": ["b"]}, "Guideline.from_file": {"path": folder / "rules.txt"},
            "load": {"path": folder / "saved.afape"}, "read_table": {"path": folder / "table.csv"},
            "Retrospective.split": {"shares": [0.5, 0.5]}, "Retrospective.hide": {"keep": self.data.recorded},
            "Retrospective.take": {"rows": [0, 1]}, "Comparison.estimates": {"estimator": "cc"},
            "KnownPropensity.from_arrays": {"arrays": {"b": np.full(40, 0.5), ("b", "cd"): np.full(40, 0.5)}},
            "KnownValues.from_arrays": {"arrays": {"b": np.full((40, 4), 0.5)}},
            "MGraph.from_adjacency": {"table": pd.DataFrame([[0, 1], [0, 0]], ["a", "R_b"], ["a", "R_b"])},
            "load_heloc": {"path": folder}, "load_income": {"path": folder}, "brier": {"classifier": Sure()},
            "log_loss": {"classifier": Sure()}, "score": {"classifier": Sure()},
            "rollout": {"env": afape.gym.AcquisitionVectorEnv(self.data, self.classifier)},
            "Description.reduced": {"draws": 2}, "Parts.combine": {"coefficients": np.zeros(len(found.parts().table))},
            "combine": {"sites": {"u": summary, "v": summary}}, "Summary.load": {"path": folder / "site.summary"},
            "Scan.split": {"shares": [0.5, 0.5]}, "Scan.read": {}, "Sites.to_html": {"sensitivity": False},
            "GraphMechanism.random": {}, "plots.costs": {"found": compared}, "plots.differences": {"found": compared},
            "plots.graph": {"found": afape.MGraph("a -> R_b; R_cd")},
            "plots.convergence": {"found": {"cc": found["cc"]["total"]}},
            "from_sb3": {"observe": "plain"}, "budget_curve": {"budgets": [1], "missingness": MCAR()},
            "from_afabench_bundle": {"dataset": Tensors(), "classifier": lambda **tensors: None},
            "AcquisitionEnv": env, "AcquisitionVectorEnv": env, "write_report": {"found": compared, "sensitivity": False},
            "write_appendix": {"found": compared, "path": folder / "a.md"}, "Comparison.to_excel": {"path": folder / "a.xlsx"},
            "Evaluation.to_excel": {"path": folder / "a.xlsx"},
            "Comparison.to_html": {"sensitivity": False}, "Evaluation.to_html": {"sensitivity": False},
            "Sensitivity.bounds": {"policy": "some"}, "Sensitivity.estimate": {"policy": "some"},
            "Sensitivity.tipping": {"b": "none"}, "summarize": {"found": compared},
            "plots.sensitivity": {"found": weak}, "MNAR": {"adjust": ["b"]}, "MGraph.identify": {"wanted": ["b"]},
        }  # fmt: skip

    def train(self, data):
        self.policy.calls += 1
        return afape.AcquireNone()

    def made(self, targets):
        return agents.FittedQ(targets=targets, n_iterations=1, max_states=50)

    def results(self):
        columns = ["rows", "draw", "truth", "estimate", "std_error", "lower", "upper", "ess", "unsupported"]
        line = dict.fromkeys(columns, 1.0) | {"agent": "a", "estimator": "cc", "target": "total", "support": ""}
        return pd.DataFrame([line | {"run": "convergence"}])

    def call(self, callee, **spoiled):
        special = self.special.get(callee.name, {})
        needed = [name for name, p in callee.parameters.items() if p.default is p.empty]
        arguments = {name: special.get(name, self.common.get(name)) for name in needed} | special | spoiled
        owner = callee.owner
        if "self" not in inspect.signature(callee.function).parameters:
            made = callee.function(**arguments)
            if hasattr(made, "get_params") and hasattr(made, "fit"):  # scikit-learn's kind checks when it is fitted
                made.fit(self.data, *([] if callee.name == "ImputedClassifier" else [self.classifier]))
            elif hasattr(made, "bind") and not hasattr(made, "fit") and not isinstance(made, afape.KnownValues):
                made.bind(self.data.problem)
            elif isinstance(made, afape.KnownPropensity):
                made.lookup(self.data)
            return made
        return callee.function(self.object(owner), **arguments)

    def object(self, owner):
        """Return an object of this class, whose method is called."""
        if owner.__name__ in self.objects:
            return self.objects[owner.__name__]
        if owner is agents.FittedQ:
            return owner(n_iterations=1, max_states=50)
        if hasattr(owner, "n_endings"):  # Q networks
            return owner(agents.Training(hidden=(2,), n_rounds=1, n_episodes=8, n_steps=1, batch_size=4))
        if not issubclass(owner, gymnasium.Env | gymnasium.vector.VectorEnv):
            return owner()
        env = owner(self.data, self.classifier)
        env.reset(seed=0)
        return env


class StartedError(Exception):
    """All arguments were accepted and an experiment starts."""


def start(*_):
    raise StartedError


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)  # texts are accepted as paths
        patch.setattr("afape.benchmark.runner.complete_table", start)
        yield Good(folder)


def late(*_):
    raise TimeoutError("took more than 10 seconds")


def fault_in(good, callee, argument, value):
    """Return what is wrong about how this value is taken or refused; an empty text if nothing is."""
    calls = good.policy.calls
    signal.setitimer(signal.ITIMER_REAL, 10)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", afape.warnings.AfapeWarning)
            good.call(callee, **{argument: value})
    except StartedError:
        return "" if may_be_accepted(callee.parameters[argument], value) else "accepted"
    except BaseException as error:
        fault = fault_of(argument, error) or ("refused after work" if good.policy.calls > calls else "")
        return fault and f"{fault}: {type(error).__name__} {str(error)[:300]}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        plt.close("all")
    return "" if may_be_accepted(callee.parameters[argument], value) else "accepted"


@pytest.mark.parametrize("name", CALLABLES)
def test_every_argument(good, name):
    signal.signal(signal.SIGALRM, late)
    callee = CALLABLES[name]
    faults = [
        f"{name}({argument}={what}): {fault}"
        for argument in callee.parameters
        for what, value in WRONG.items()
        if (fault := fault_in(good, callee, argument, value))
    ]
    assert not faults, "\n".join(faults)


COSTS = [{"b": -1, "cd": 1}, {"b": "1", "cd": 1}, {"b": True, "cd": 1}, {"a": 1, "b": 1, "cd": 1}]
RANGES = [
    *({"b": ends} for ends in [(-1, 2), (0, NAN), (0, INF), (2, 1), 3, ("a", "c"), "05", (False, True)]),
    *({"nosuch": (0, 1)}, {"a": (0, 1)}, {"b": (0, 1), "cd": (0, 1), "misclassification": (0, 1)}),
]
UNKNOWN = ["nosuch", 3, True]
RUDE_COSTS = [
    *({"b": Rude()}, {0: {1: Rude()}, 1: {0: 1.0}}, [[0, Rude()], [1, 0]]),
    *({RudeName(): {1: 1.0}, 1: {0: 1.0}}, pd.DataFrame([[0, 1], [1, 0]], index=[0, RudeName()])),
]
REFUSED = {  # of the right type, but not what is meant
    "optimize": {
        "family": [[], [3], {}], "parameters": [[0.5]], "holdout": [0, 1, 2, -0.1], "n_splits": [1, 0], "confidence": [0, 1, 2],
        "estimators": [[], ["nosuch"], ["cc", "CC"]],
    },
    "compare_training": {
        "agent": [lambda targets: 3, afape.AcquireAll], "missingness": [afape.MNAR(graph="a -> R_b; R_cd"), MCAR],
        "estimators": [[], ["nosuch"]],
    },
    "evaluate": {
        "bootstrap": [-1, True], "n_folds": [0, 41], "split": [0, 1, 0.999],
        "by": ["nosuch", ["u"] * 39, [None] * 40],
        "n_imputations": [0, 1], "n_jobs": [0], "classifier": [make_pipeline(DecisionTreeClassifier()), DecisionTreeClassifier],
    },
    "compare": {"policies": [{}, {"": afape.AcquireAll()}, {3: afape.AcquireAll()}, {"p": 3}, [afape.AcquireAll()]]},
    "sensitivity": {"lambdas": [[], [0.5], [2, 1], [1, INF]], "policies": [{}, {3: afape.AcquireAll()}]},
    "Problem": {
        "groups": [{1: ["a"]}, {"a": []}, {"a": ["a", "a"]}, {"a": {"a"}}, {"a": [["a"]]}], "costs": [{"b": 10**400}, {"c": 1.0}],
        "classes": [["no"], ["no", "no"], [[]], [{}, {}]], "categories": [{"a": [[]]}, {"a": "uv"}, {"z": []}],
        "misclassification_cost": RUDE_COSTS,
    },
    "Retrospective": {"cluster": [np.arange(40), "nosuch", ["a"]], "missing_labels": ["ignore"]},
    "Retrospective.split": {"shares": [[0.5, 0.6], [1.5, -0.5], [1.0, 0.0]]},
    "scan": {
        "block_rows": [0, -1], "cluster": ["nosuch"], "weight": ["nosuch"], "missing_labels": ["ignore"], "keep": [True],
        "files": ["nosuch.csv", []], "blanks": [[3]],
    },
    "combine": {"sites": [{}], "cases": [{}, {"u": 1.0}, {"u": 0.0, "v": 1.0}]},
    "Scan.split": {"shares": [[0.5, 0.6], [1.5, -0.5], [1.0, 0.0]]},
    "Retrospective.take": {"rows": [[40], [-41], [True], np.ones(39, dtype=bool)]},
    "ClusterAgent": {"n_clusters": [0], "min_rows": [0], "max_sets": [0]},
    "CostSensitiveNaiveBayes": {"n_bins": [1], "smoothing": [0, -1]},
    "CostSensitiveTree": {"min_rows": [0]},
    "FittedQ": {"n_iterations": [0], "epsilon": [1.5], "random_state": [10**30], "targets": UNKNOWN},
    "Training": {
        "hidden": [[0], [0.5], [True]], "learning_rate": [0], "batch_size": [0], "explore_from": [2], "optimizer": UNKNOWN,
    },
    "from_afabench": {"selections": [["nosuch"], [9], [True]], "n_draws": [0]},
    "from_function": {"columns": [["nosuch"], [None]]},
    "from_sb3": {"epsilon": [2]},
    "StepBudget": {"n_steps": [-1]},
    "CostBudget": {"budget": [-1]},
    "budget_curve": {"budgets": [[], [1, 1], [-1], ["x"]], "kind": UNKNOWN, "estimator": UNKNOWN},
    "classifier_from_afabench": {"output_kind": UNKNOWN, "features": [[-1], [0, 0]], "feature_shape": [[0], [0.5]]},
    "from_afabench_bundle": {
        "initial": [[9], [True]], "prices": [[0, 1], [1]], "classes": [["a"]], "unmasker": [3], "free": UNKNOWN,
    },
    "Evaluation.reprice": {"costs": COSTS, "misclassification_cost": [-1, np.ones((3, 3)), *RUDE_COSTS]},
    "Comparison.reprice": {"costs": COSTS, "misclassification_cost": RUDE_COSTS},
    "Comparison.price_plane": {"prices": RANGES, "points": [1]},
    "Evaluation.calibration": {"score": UNKNOWN, "label": UNKNOWN,
        "bins": [0, [0.0], [1, 0], ["b", "c"], [0, NAN, 1], [False, True]]},
    "Comparison.frontier": {"label": UNKNOWN},
    "Evaluation.subgroup_differences": {"target": UNKNOWN},
    "Comparison.ranking": {"target": UNKNOWN},
    "load_heloc": {"codes": UNKNOWN, "empty_rows": UNKNOWN},
    "load_income": {"unknown": UNKNOWN},
    "Description.reduced": {"draws": [1]},
    "Settings": {"jobs": [0], "seed": [2**32]},
    "data_efficiency": {"run": UNKNOWN, "target": UNKNOWN},
}  # fmt: skip
MEANT = [(name, argument, value) for name, by in REFUSED.items() for argument, values in by.items() for value in values]


@pytest.mark.parametrize(
    ("name", "argument", "value"), MEANT, ids=[f"{n}.{a}-{k}" for k, (n, a, _) in enumerate(MEANT)]
)
def test_values_that_are_not_meant(good, name, argument, value):
    calls = good.policy.calls
    with pytest.raises((TypeError, ValueError, KeyError)) as refusal:
        good.call(CALLABLES[name], **{argument: value})
    assert not fault_of(argument, refusal.value)
    assert good.policy.calls == calls


def test_long_and_rude_values_have_short_texts():
    assert all(len(shown(value)) < 300 and "\n" not in shown(value) for value in WRONG.values())
    assert shown(Rude()) == "Rude"
    assert shown([Rude()]) == "list"
    assert shown(10**5000) == "int"
    assert shown("x") == "'x'"
