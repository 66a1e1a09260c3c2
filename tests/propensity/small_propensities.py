"""What tests of propensities share: conditioning, folds, a linear model, and a question."""

import numpy as np

from afape import LearnedPropensity
from afape.missingness.assumptions import Conditioning

LINEAR = LearnedPropensity(form="linear", min_propensity=0.0)


def given(data, *groups):
    """Conditioning on always recorded groups."""
    mask = np.isin(np.arange(data.problem.n_groups), groups)
    return Conditioning(mask, label=False, gaps=np.zeros_like(mask))


def one_fold(data):
    return np.zeros(len(data), dtype=np.intp)


def ask(propensity, data, required):
    """P(R >= required) in every row."""
    sets = np.asarray(required, dtype=bool)[None]
    return propensity.probability(np.arange(len(data)), sets, np.zeros(len(data), dtype=np.intp))


class Sign:
    """Predicts 1 where the acquired values have a positive sum."""

    def predict(self, values, acquired):
        return (np.nansum(values, axis=1) > 0).astype(int)
