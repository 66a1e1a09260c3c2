"""Fixtures that several rooms share."""

import pytest

from afape.benchmark.synthetic import synthetic_mar


@pytest.fixture(scope="session")
def experiment():
    """The synthetic MAR problem, small."""
    return synthetic_mar(6000)


@pytest.fixture(scope="session")
def parts(experiment):
    """Trained classifier, records with gaps, and the same rows complete."""
    return experiment.prepare()
