"""Evaluate active-feature-acquisition agents from records with gaps: what would they cost if deployed."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agents import AcquireAll, AcquireNone, DecisionRule, FixedOrder, Policy, RandomSubset
    from .bootstrap import Bootstrap
    from .check import check_missingness, check_support
    from .classifiers import Classifier, ImputedClassifier
    from .comparison import Comparison, compare
    from .data import Problem, Retrospective, merge_columns
    from .diagnostics import MissingnessCheck, Support
    from .estimators import Bounds, Estimate
    from .evaluation import evaluate, true_cost, true_parts
    from .frontier import Frontier
    from .imputation import ChainedImputer, Imputer
    from .missingness import MAR, MCAR, MNAR, Identification, MGraph
    from .notices import (
        AfapeWarning,
        AssumptionWarning,
        BalanceWarning,
        BlankTextWarning,
        ClippedWeightsWarning,
        DroppedRowsWarning,
        FarValuesWarning,
        HeavyWeightsWarning,
        InterruptedBootstrapWarning,
        NormalizerWarning,
        PartialGroupWarning,
        PropensityFitWarning,
        SeenRowsWarning,
        StochasticMethodWarning,
        SupportWarning,
        UnrecordedColumnWarning,
        ValueFallbackWarning,
    )
    from .nuisance import KnownPropensity, KnownValues, LearnedPropensity, LearnedValues, ValueRegressor
    from .optimisation import Optimisation, optimize
    from .outcomes import brier, log_loss, score
    from .parts import Parts
    from .price_plane import PricePlane
    from .problem_file import ProblemFile, ProblemFileError, read_problem, read_table
    from .result import Evaluation, NotEstimableError
    from .sensitivity_analysis import Sensitivity, Tipping, sensitivity
    from .simulation import BlockMechanism, GraphMechanism, IndependentMechanism, LogisticMechanism
    from .storage import load, save
    from .support import SupportThresholds
    from .training import compare_training, training_weights
    from .walk import WalkOptions

__version__ = "0.1.0"

__all__ = [
    "MAR",
    "MCAR",
    "MNAR",
    "AcquireAll",
    "AcquireNone",
    "AfapeWarning",
    "AssumptionWarning",
    "BalanceWarning",
    "BlankTextWarning",
    "BlockMechanism",
    "Bootstrap",
    "Bounds",
    "ChainedImputer",
    "Classifier",
    "ClippedWeightsWarning",
    "Comparison",
    "DecisionRule",
    "DroppedRowsWarning",
    "Estimate",
    "Evaluation",
    "FarValuesWarning",
    "FixedOrder",
    "Frontier",
    "GraphMechanism",
    "HeavyWeightsWarning",
    "Identification",
    "ImputedClassifier",
    "Imputer",
    "IndependentMechanism",
    "InterruptedBootstrapWarning",
    "KnownPropensity",
    "KnownValues",
    "LearnedPropensity",
    "LearnedValues",
    "LogisticMechanism",
    "MGraph",
    "MissingnessCheck",
    "NormalizerWarning",
    "NotEstimableError",
    "Optimisation",
    "PartialGroupWarning",
    "Parts",
    "Policy",
    "PricePlane",
    "Problem",
    "ProblemFile",
    "ProblemFileError",
    "PropensityFitWarning",
    "RandomSubset",
    "Retrospective",
    "SeenRowsWarning",
    "Sensitivity",
    "StochasticMethodWarning",
    "Support",
    "SupportThresholds",
    "SupportWarning",
    "Tipping",
    "UnrecordedColumnWarning",
    "ValueFallbackWarning",
    "ValueRegressor",
    "WalkOptions",
    "brier",
    "check_missingness",
    "check_support",
    "compare",
    "compare_training",
    "evaluate",
    "load",
    "log_loss",
    "merge_columns",
    "optimize",
    "read_problem",
    "read_table",
    "save",
    "score",
    "sensitivity",
    "training_weights",
    "true_cost",
    "true_parts",
]

# Names are looked up when first used: importing scikit-learn takes a second, and ``afape --help`` should not wait for it.
_HOMES = {
    ".agents": "AcquireAll AcquireNone DecisionRule FixedOrder Policy RandomSubset",
    ".bootstrap": "Bootstrap",
    ".classifiers": "Classifier ImputedClassifier",
    ".comparison": "Comparison compare",
    ".data": "Problem Retrospective merge_columns",
    ".check": "check_missingness check_support",
    ".diagnostics": "MissingnessCheck Support",
    ".estimators": "Bounds Estimate",
    ".evaluation": "evaluate true_cost true_parts",
    ".frontier": "Frontier",
    ".imputation": "ChainedImputer Imputer",
    ".missingness": "MAR MCAR MNAR Identification MGraph",
    ".notices": "AfapeWarning AssumptionWarning BalanceWarning BlankTextWarning ClippedWeightsWarning DroppedRowsWarning "
    "FarValuesWarning HeavyWeightsWarning "
    "NormalizerWarning PartialGroupWarning "
    "PropensityFitWarning SeenRowsWarning StochasticMethodWarning SupportWarning "
    "UnrecordedColumnWarning InterruptedBootstrapWarning ValueFallbackWarning",
    ".nuisance": "KnownPropensity KnownValues LearnedPropensity LearnedValues ValueRegressor",
    ".optimisation": "Optimisation optimize",
    ".outcomes": "brier log_loss score",
    ".parts": "Parts",
    ".price_plane": "PricePlane",
    ".problem_file": "ProblemFile ProblemFileError read_problem read_table",
    ".result": "Evaluation NotEstimableError",
    ".sensitivity_analysis": "Sensitivity Tipping sensitivity",
    ".simulation": "BlockMechanism GraphMechanism IndependentMechanism LogisticMechanism",
    ".storage": "load save",
    ".support": "SupportThresholds",
    ".training": "compare_training training_weights",
    ".walk": "WalkOptions",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}


_MODULES = ("agents", "benchmark", "datasets", "gym", "plots")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name not in _HOME_OF:
        raise AttributeError(f"module 'afape' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
