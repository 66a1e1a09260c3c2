"""Classifiers that predict the label from the acquired groups."""

from .classifier import Classifier, ask_classifier, check_classifier, check_not_training
from .imputed_classifier import ImputedClassifier, column_means
from .trained_on import check_columns
from .training import TrainedClassifier, train_classifier

__all__ = [
    "Classifier",
    "ImputedClassifier",
    "TrainedClassifier",
    "ask_classifier",
    "check_classifier",
    "check_columns",
    "check_not_training",
    "column_means",
    "train_classifier",
]
