"""Evaluate active-feature-acquisition agents from records with gaps: what would they cost if deployed."""

from .agents import AcquireAll, AcquireNone, DecisionRule, FixedOrder, Policy, RandomSubset
from .classifiers import Classifier, ImputedClassifier
from .data import Problem, Retrospective
from .estimators import Estimate, Support
from .evaluation import evaluate, true_cost
from .missingness import MAR, MCAR, IndependentMechanism, LogisticMechanism
from .notices import (
    AfapeWarning,
    ClippedWeightsWarning,
    NormalizerWarning,
    PartialGroupWarning,
    PropensityFitWarning,
    SeenRowsWarning,
    SupportWarning,
    UnrecordedColumnWarning,
)
from .nuisance import KnownPropensity, LearnedPropensity
from .result import Evaluation, NotEstimableError
from .walk import WalkOptions

__version__ = "0.1.0"

__all__ = [
    "MAR",
    "MCAR",
    "AcquireAll",
    "AcquireNone",
    "AfapeWarning",
    "Classifier",
    "ClippedWeightsWarning",
    "DecisionRule",
    "Estimate",
    "Evaluation",
    "FixedOrder",
    "ImputedClassifier",
    "IndependentMechanism",
    "KnownPropensity",
    "LearnedPropensity",
    "LogisticMechanism",
    "NormalizerWarning",
    "NotEstimableError",
    "PartialGroupWarning",
    "Policy",
    "Problem",
    "PropensityFitWarning",
    "RandomSubset",
    "Retrospective",
    "SeenRowsWarning",
    "Support",
    "SupportWarning",
    "UnrecordedColumnWarning",
    "WalkOptions",
    "evaluate",
    "true_cost",
]
