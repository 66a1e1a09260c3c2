"""Draw a group column by column from linear and logistic regressions with drawn parameters."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from ..arrays import Bools, Floats, Ints
from ..nuisance.propensity.logistic import fit_logistic, logistic_design
from .blocks import Block, Variable

__all__ = ["ROWS_PER_COEFFICIENT", "LinearModel", "least_squares"]

ROWS_PER_COEFFICIENT = 10  # that a label class must have to get a regression of its own
# What the prior of a standardised coefficient is worth, in rows: enough to tell collinear columns apart, no more.
_PRIOR_ROWS = 0.01


class LinearModel:
    r"""Regressions on the other columns, one per label class where that has the rows.

    The columns of a group are missing together, so the group is drawn by the chain rule: its first column given the
    other groups, the next given these and the first. A number x is drawn from
    :math:`N(z'\beta, \sigma^2)` with :math:`\sigma^2 \sim RSS / \chi^2_{m-p}` and
    :math:`\beta \sim N(\hat\beta, \sigma^2 (Z'Z)^{-1})`, a category from logistic regressions of each level against
    the rarer ones, their coefficients drawn from the normal approximation of the posterior under Firth's prior. Where
    rows belong together, a fit to a bootstrap sample of clusters stands for the draw from the posterior, which would take
    the rows for independent. A row is imputed without a look at the others of its cluster.

    Parameters
    ----------
    matching : bool
        Take a recorded number whose prediction is near (predictive mean matching) in place of a normal draw. Fit and
        donors then come from one bootstrap sample, because donors that are the same in every imputation would make
        the imputations too much alike.
    n_donors : int
        Donors to choose from when matching.
    """

    def __init__(self, matching: bool = False, n_donors: int = 5) -> None:
        self.matching, self.n_donors = matching, n_donors

    def draw(self, block: Block, predictors: Floats, labels: Ints, rng: np.random.Generator) -> Floats:
        """Columns of the block in the rows that lack it."""
        out = np.empty((len(block.absent), len(block.columns)))
        design = predictors
        count = block.bootstrap(rng)
        for variable in block.variables:
            columns = variable.columns
            for learn, fill in _label_parts(labels, block, design.shape[1]):
                z = _design(design, labels, block.present[learn], block.absent[fill])
                known, wanted = z[: len(learn)], z[len(learn) :]
                held = block.values[np.ix_(learn, columns)]
                sample = np.repeat(np.arange(len(learn)), count[learn] if count[learn].any() else 1)
                out[np.ix_(fill, columns)] = self._draw(variable, known, held, wanted, sample, block.clustered, rng)
            drawn = np.empty((len(design), len(columns)))
            drawn[block.present], drawn[block.absent] = block.values[:, columns], out[:, columns]
            design = np.column_stack([design, drawn])
        return out

    def _draw(
        self,
        variable: Variable,
        known: Floats,
        held: Floats,
        wanted: Floats,
        sample: Ints,
        clustered: bool,
        rng: np.random.Generator,
    ) -> Floats:
        if self.matching and variable.levels is None:
            fitted = least_squares(known[sample], held[sample, 0])
            chosen = near_donors(known[sample] @ fitted, wanted @ fitted, self.n_donors, rng)
            return np.asarray(held[sample[chosen]])
        if clustered:
            known, held = known[sample], held[sample]
        if variable.levels is not None:
            return draw_levels(variable.levels, known, held, wanted, rng, posterior=not clustered)
        return draw_numbers(known, held[:, 0], wanted, rng, posterior=not clustered)[:, None]


def least_squares(z: Floats, x: Floats) -> Floats:
    """Coefficients of standardised columns, the intercept first; a weak prior keeps them finite."""
    return np.asarray(np.linalg.solve(z.T @ z + _prior(z.shape[1]), z.T @ x))


def _prior(p: int) -> Floats:
    return np.diag([0.0] + [_PRIOR_ROWS] * (p - 1))


def draw_numbers(z: Floats, x: Floats, wanted: Floats, rng: np.random.Generator, posterior: bool = True) -> Floats:
    """Numbers from a linear regression, its parameters drawn from their posterior or as fitted."""
    m, p = z.shape
    prior = _prior(p)
    fitted = least_squares(z, x)
    residual = x - z @ fitted
    freedom = max(m - p, 1)
    sigma = np.sqrt(
        (residual @ residual + fitted @ prior @ fitted) / (rng.chisquare(freedom) if posterior else freedom)
    )
    if not posterior:
        return np.asarray(wanted @ fitted + sigma * rng.normal(size=len(wanted)))
    root = np.linalg.cholesky(z.T @ z + prior)
    drawn = fitted + sigma * np.linalg.solve(root.T, rng.normal(size=p))
    return np.asarray(wanted @ drawn + sigma * rng.normal(size=len(wanted)))


def near_donors(donor: Floats, wanted: Floats, n_donors: int, rng: np.random.Generator) -> Ints:
    """One of the donors with the nearest predictions, at random."""
    k = min(n_donors, len(donor))
    order = np.argsort(donor, kind="stable")
    ordered = donor[order]
    at = np.searchsorted(ordered, wanted)  # the k nearest lie within k places of it
    near = (at[:, None] + np.arange(-k, k)).clip(0, len(donor) - 1)
    distance = np.abs(ordered[near] - wanted[:, None])
    distance[:, 1:][near[:, 1:] == near[:, :-1]] = np.inf  # clipped at an end
    nearest = np.argsort(distance, axis=1, kind="stable")[:, :k]
    choice = nearest[np.arange(len(wanted)), rng.integers(k, size=len(wanted))]
    # Many donors may share the chosen prediction; any of them will do, not just those that happen to be near in order.
    value = ordered[near[np.arange(len(wanted)), choice]]
    low, high = np.searchsorted(ordered, value, side="left"), np.searchsorted(ordered, value, side="right")
    return np.asarray(order[low + (rng.random(len(wanted)) * (high - low)).astype(np.intp)])


def draw_levels(
    levels: Floats, z: Floats, held: Floats, wanted: Floats, rng: np.random.Generator, posterior: bool = True
) -> Floats:
    """Levels from logistic regressions of each level against the rarer ones, parameters drawn or as fitted."""
    code = (held[:, None, :] == levels[None]).all(axis=2).argmax(axis=1)
    out = np.full(len(wanted), -1)
    left = np.ones(len(z), dtype=bool)
    for level in range(len(levels)):
        is_level: Bools = code[left] == level
        open_ = out < 0
        if is_level.all():
            out[open_] = level
            break
        if not is_level.any():
            continue
        fit = fit_logistic(z[left], is_level, firth=True)
        theta = fit.coefficients
        if posterior:
            values, vectors = np.linalg.eigh(fit.inverse_information)
            theta = theta + vectors @ (np.sqrt(values.clip(0)) * rng.normal(size=len(values)))
        taken = open_ & (rng.random(len(wanted)) < expit(wanted @ theta))
        out[taken] = level
        left[left] = ~is_level
    return np.asarray(levels[out])


def _label_parts(labels: Ints, block: Block, n_columns: int) -> list[tuple[Ints, Ints]]:
    """Rows to learn from and rows to fill, by their place in the block.

    A label class with rows enough is on its own; the others learn from all rows, with the label as a column.
    """
    known, wanted = labels[block.present], labels[block.absent]
    count = np.bincount(known, minlength=int(labels.max()) + 1)
    alone = count >= ROWS_PER_COEFFICIENT * (n_columns + 1)
    parts = [(np.flatnonzero(known == y), np.flatnonzero(wanted == y)) for y in np.flatnonzero(alone)]
    parts.append((np.arange(len(known)), np.flatnonzero(~alone[wanted])))
    return [(learn, fill) for learn, fill in parts if len(fill)]


def _design(columns: Floats, labels: Ints, learn: Ints, fill: Ints) -> Floats:
    """Intercept, standardised columns, and the label where it varies; the rows to learn from first."""
    rows = np.concatenate([learn, fill])
    one_hot = np.eye(int(labels.max()) + 1)[labels[rows]]
    varying = one_hot[: len(learn)].any(axis=0)
    one_hot = one_hot[:, varying & (varying.cumsum() > 1)]  # the first is the intercept's
    return logistic_design(np.column_stack([columns[rows], one_hot]))
