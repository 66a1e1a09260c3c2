"""Experiments with known truth: hide values of a complete table, evaluate, compare with the true cost.

An experiment is described in a TOML file, which `read_description` reads and `run_experiment` runs. `reproduce` runs those
of the paper.
"""

from .description import Description, read_description
from .manifest import OtherExperimentError
from .paper_experiments import EXPERIMENTS, UnknownExperimentError, describe, reproduce
from .runner import Finished, Settings, run_experiment
from .section import DescriptionError
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
