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
    from .cwcf import CwCF
    from .dqn import DQN
    from .fitted_q import FittedQ
    from .function import from_columns, from_function
    from .guideline import Guideline, GuidelineError
    from .joint import JointDQN
    from .naive_bayes import CostSensitiveNaiveBayes
    from .sb3 import from_sb3
    from .training import SetWeights, Training
    from .value_of_information import ValueOfInformation

__all__ = [
    "DQN",
    "AcquireAll",
    "AcquireNone",
    "ClusterAgent",
    "CostSensitiveNaiveBayes",
    "CostSensitiveTree",
    "CwCF",
    "DecisionRule",
    "FittedQ",
    "FixedOrder",
    "Guideline",
    "GuidelineError",
    "JointDQN",
    "Policy",
    "RandomSubset",
    "SetWeights",
    "StepBudget",
    "Training",
    "ValueOfInformation",
    "classifier_from_afabench",
    "from_afabench",
    "from_columns",
    "from_function",
    "from_sb3",
]

# Looked up when first used: agents that learn import scikit-learn.
_HOME_OF = {
    "ClusterAgent": ".clusters",
    "CostSensitiveNaiveBayes": ".naive_bayes",
    "CostSensitiveTree": ".cost_tree",
    "CwCF": ".cwcf",
    "DQN": ".dqn",
    "FittedQ": ".fitted_q",
    "Guideline": ".guideline",
    "GuidelineError": ".guideline",
    "JointDQN": ".joint",
    "SetWeights": ".training",
    "StepBudget": ".budget",
    "Training": ".training",
    "ValueOfInformation": ".value_of_information",
    "classifier_from_afabench": ".afabench",
    "from_afabench": ".afabench",
    "from_columns": ".function",
    "from_function": ".function",
    "from_sb3": ".sb3",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'afape.agents' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name], __name__), name)
    globals()[name] = value
    return value
