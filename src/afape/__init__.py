"""Evaluate active-feature-acquisition agents from records with gaps: what would they cost if deployed."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .action_values import KnownValues, LearnedValues
    from .agents.builtin import AcquireAll, AcquireNone, DecisionRule, FixedOrder, RandomSubset
    from .agents.policy import Policy
    from .blocks import Scan, Sites, Summary, combine, scan
    from .budgets import budget_curve
    from .check import check_missingness, check_support
    from .classifiers import Classifier, ImputedClassifier
    from .comparison import compare
    from .data import Problem, Retrospective, merge_columns, population_weights
    from .estimators import Bounds, Estimate
    from .evaluation import evaluate, true_cost, true_parts
    from .files.problem_file import read_problem
    from .files.saved import load, save
    from .files.tables import read_table
    from .imputation import ChainedImputer
    from .missingness import MAR, MCAR, MNAR, KnownPropensity, MGraph
    from .optimisation import optimize
    from .propensity import LearnedPropensity
    from .results import Comparison, Evaluation, NotEstimableError
    from .run.bootstrap import Bootstrap
    from .sensitivity_analysis import sensitivity
    from .support import SupportThresholds
    from .walk import WalkOptions
    from .walk.outcomes import brier, log_loss, score

__version__ = "0.1.0"

__all__ = [
    "MAR",
    "MCAR",
    "MNAR",
    "AcquireAll",
    "AcquireNone",
    "Bootstrap",
    "Bounds",
    "ChainedImputer",
    "Classifier",
    "Comparison",
    "DecisionRule",
    "Estimate",
    "Evaluation",
    "FixedOrder",
    "ImputedClassifier",
    "KnownPropensity",
    "KnownValues",
    "LearnedPropensity",
    "LearnedValues",
    "MGraph",
    "NotEstimableError",
    "Policy",
    "Problem",
    "RandomSubset",
    "Retrospective",
    "Scan",
    "Sites",
    "Summary",
    "SupportThresholds",
    "WalkOptions",
    "brier",
    "budget_curve",
    "check_missingness",
    "check_support",
    "combine",
    "compare",
    "evaluate",
    "load",
    "log_loss",
    "merge_columns",
    "optimize",
    "population_weights",
    "read_problem",
    "read_table",
    "save",
    "scan",
    "score",
    "sensitivity",
    "true_cost",
    "true_parts",
]

# Names are looked up when first used: importing scikit-learn takes a second, and ``afape --help`` should not wait for it.
_HOMES = {
    ".action_values": "KnownValues LearnedValues",
    ".agents.builtin": "AcquireAll AcquireNone DecisionRule FixedOrder RandomSubset",
    ".agents.policy": "Policy",
    ".blocks": "Scan Sites Summary combine scan",
    ".budgets": "budget_curve",
    ".check": "check_missingness check_support",
    ".classifiers": "Classifier ImputedClassifier",
    ".comparison": "compare",
    ".data": "Problem Retrospective merge_columns population_weights",
    ".estimators": "Bounds Estimate",
    ".evaluation": "evaluate true_cost true_parts",
    ".files.problem_file": "read_problem",
    ".files.saved": "load save",
    ".files.tables": "read_table",
    ".imputation": "ChainedImputer",
    ".missingness": "MAR MCAR MNAR KnownPropensity MGraph",
    ".optimisation": "optimize",
    ".propensity": "LearnedPropensity",
    ".results": "Comparison Evaluation NotEstimableError",
    ".run.bootstrap": "Bootstrap",
    ".sensitivity_analysis": "sensitivity",
    ".support": "SupportThresholds",
    ".walk": "WalkOptions",
    ".walk.outcomes": "brier log_loss score",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

_ROOMS = (
    "action_values",
    "agents",
    "benchmark",
    "classifiers",
    "datasets",
    "files",
    "gym",
    "imputation",
    "missingness",
    "optimisation",
    "plots",
    "report",
    "results",
    "sensitivity_analysis",
    "support",
    "warnings",
)


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f".{name}", __name__)
    if name not in _HOME_OF:
        raise AttributeError(f"module 'afape' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
