"""Policies: the protocol, those that come with the package, and those that learn."""

from .builtin import AcquireAll, AcquireNone, DecisionRule, FixedOrder, RandomSubset
from .cwcf import CwCF
from .dqn import DQN
from .fitted_q import FittedQ
from .joint import JointDQN
from .policy import Policy
from .training import SetWeights, Training

__all__ = [
    "DQN",
    "AcquireAll",
    "AcquireNone",
    "CwCF",
    "DecisionRule",
    "FittedQ",
    "FixedOrder",
    "JointDQN",
    "Policy",
    "RandomSubset",
    "SetWeights",
    "Training",
]
