"""Choice of a policy by its estimated cost, and training of agents on records with gaps."""

from .choosing import Optimisation, optimize
from .training import compare_training, training_weights

__all__ = ["Optimisation", "compare_training", "optimize", "training_weights"]
