"""Choice of a policy by its estimated cost, and training of agents on records with gaps."""

from .choosing import Optimisation, optimize
from .training import compare_training, labelled_rows, training_weights

__all__ = ["Optimisation", "compare_training", "labelled_rows", "optimize", "training_weights"]
