"""Policies: the protocol, those that come with the package, those that learn, and adapters for agents from elsewhere."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .builtin import AcquireAll, AcquireNone, DecisionRule, FixedOrder, RandomSubset
from .policy import Policy

if TYPE_CHECKING:
    from .afabench import classifier_from_afabench, from_afabench
    from .budget import StepBudget
    from .clusters import ClusterAgent
    from .cost_tree import CostSensitiveTree
    from .function import from_function
    from .guideline import Guideline, GuidelineError
    from .naive_bayes import CostSensitiveNaiveBayes
    from .sb3 import from_sb3
    from .value_of_information import ValueOfInformation

__all__ = [
    "AcquireAll",
    "AcquireNone",
    "ClusterAgent",
    "CostSensitiveNaiveBayes",
    "CostSensitiveTree",
    "DecisionRule",
    "FixedOrder",
    "Guideline",
    "GuidelineError",
    "Policy",
    "RandomSubset",
    "StepBudget",
    "ValueOfInformation",
    "classifier_from_afabench",
    "from_afabench",
    "from_function",
    "from_sb3",
]

# Looked up when first used: agents that learn import scikit-learn.
_HOME_OF = {
    "ClusterAgent": ".clusters",
    "CostSensitiveTree": ".cost_tree",
    "Guideline": ".guideline",
    "GuidelineError": ".guideline",
    "StepBudget": ".budget",
    "CostSensitiveNaiveBayes": ".naive_bayes",
    "ValueOfInformation": ".value_of_information",
    "classifier_from_afabench": ".afabench",
    "from_afabench": ".afabench",
    "from_function": ".function",
    "from_sb3": ".sb3",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'afape.agents' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name], __name__), name)
    globals()[name] = value
    return value
