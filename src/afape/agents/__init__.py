"""Agents: the protocol of a policy, built-in policies, agents that learn from records, adapters for other libraries."""

from .afabench import from_afabench
from .afabench_bundle import BenchBundle, from_afabench_bundle
from .afabench_classifier import classifier_from_afabench
from .budgets import CostBudget, StepBudget
from .builtin import AcquireAll, AcquireNone, DecisionRule, FixedOrder, RandomSubset
from .clusters import ClusterAgent
from .cost_tree import CostSensitiveTree
from .cwcf import CwCF
from .dqn import DQN
from .fitted_q import FittedQ
from .function import from_columns, from_function
from .guideline import Guideline, GuidelineError
from .joint_dqn import JointDQN
from .look_ahead import LookAhead
from .naive_bayes import CostSensitiveNaiveBayes
from .policy import Policy
from .sb3 import from_sb3
from .settings import SetWeights, Training
from .value_of_information import ValueOfInformation

__all__ = [
    "DQN",
    "AcquireAll",
    "AcquireNone",
    "BenchBundle",
    "ClusterAgent",
    "CostBudget",
    "CostSensitiveNaiveBayes",
    "CostSensitiveTree",
    "CwCF",
    "DecisionRule",
    "FittedQ",
    "FixedOrder",
    "Guideline",
    "GuidelineError",
    "JointDQN",
    "LookAhead",
    "Policy",
    "RandomSubset",
    "SetWeights",
    "StepBudget",
    "Training",
    "ValueOfInformation",
    "classifier_from_afabench",
    "from_afabench",
    "from_afabench_bundle",
    "from_columns",
    "from_function",
    "from_sb3",
]
