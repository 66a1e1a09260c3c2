"""Classifiers that predict the label from the acquired groups."""

from .classifier import Classifier, ask_classifier, check_classifier, check_not_training
from .imputed_classifier import ImputedClassifier, column_means

__all__ = [
    "Classifier",
    "ImputedClassifier",
    "ask_classifier",
    "check_classifier",
    "check_not_training",
    "column_means",
]
