"""Induce missingness in a complete table, evaluate, compare with the truth: experiments described as data, one runner.

The experiments of the paper are such descriptions (`paper_experiments`); `read_description` reads one of your own.
"""

from .description import Description, read_description
from .output import OtherExperimentError
from .paper_experiments import EXPERIMENTS, UnknownExperimentError, describe, reproduce
from .reading import DescriptionError
from .runner import Finished, Settings, run_experiment
from .summary import data_efficiency, summarise_results

__all__ = [
    "EXPERIMENTS",
    "Description",
    "DescriptionError",
    "Finished",
    "OtherExperimentError",
    "Settings",
    "UnknownExperimentError",
    "data_efficiency",
    "describe",
    "read_description",
    "reproduce",
    "run_experiment",
    "summarise_results",
]
