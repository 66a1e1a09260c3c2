"""Draw a group column by column from linear and logistic regressions whose parameters are drawn."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from .._arrays import Bools, Floats, Ints
from ..propensity.logistic import fit_logistic, logistic_design
from .incomplete_groups import IncompleteGroup, Variable

__all__ = ["ROWS_PER_COEFFICIENT", "LinearModel", "least_squares"]

ROWS_PER_COEFFICIENT = 10  # rows that a label class needs for a regression of its own
# Weight of the prior of a standardised coefficient, in rows: just enough to identify coefficients of collinear columns.
_PRIOR_ROWS = 0.01


class LinearModel:
    r"""Regressions on the other columns, one per label class with enough rows.

    The columns of a group are missing together, so the group is drawn by the chain rule: its first column given the other
    groups, the next given these and the first. A number x is drawn from :math:`N(z'\beta, \sigma^2)` with :math:`\sigma^2
    \sim RSS / \chi^2_{m-p}` and :math:`\beta \sim N(\hat\beta, \sigma^2 (Z'Z)^{-1})`. A category is drawn from logistic
    regressions of each level against the rarer ones. Their coefficients are drawn from the normal approximation of the
    posterior under Firth's prior. With clusters or row weights, a fit to a bootstrap sample replaces the draw from the
    posterior, which assumes independent rows. The imputation of a row does not use the other rows of its cluster.

    Parameters
    ----------
    matching : bool
        True to take a recorded number with a near prediction (predictive mean matching) instead of a normal draw. Fit and
        donors then come from one bootstrap sample, because equal donors in every imputation would make the imputations too
        similar.
    n_donors : int
        Number of donors to choose from when matching.
    """

    def __init__(self, matching: bool = False, n_donors: int = 5) -> None:
        self.matching, self.n_donors = matching, n_donors

    def draw(self, group: IncompleteGroup, predictors: Floats, labels: Ints, rng: np.random.Generator) -> Floats:
        """Draw the columns of the group in the rows that lack it, (len(absent), len(columns))."""
        out = np.empty((len(group.absent), len(group.columns)))
        design = predictors
        count = group.bootstrap(rng)
        for variable in group.variables:
            columns = variable.columns
            for learn, fill in _by_label(labels, group, design.shape[1]):
                z = _design(design, labels, group.present[learn], group.absent[fill])
                known, wanted = z[: len(learn)], z[len(learn) :]
                held = group.values[np.ix_(learn, columns)]
                sample = np.repeat(np.arange(len(learn)), count[learn] if count[learn].any() else 1)
                out[np.ix_(fill, columns)] = self._draw(variable, known, held, wanted, sample, group.resampled, rng)
            drawn = np.empty((len(design), len(columns)))
            drawn[group.present], drawn[group.absent] = group.values[:, columns], out[:, columns]
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


def least_squares(z: Floats, x: Floats, weight: Floats | None = None) -> Floats:
    """Coefficients of standardised columns z (m, p), the intercept first; a weak prior keeps them finite."""
    left = z.T if weight is None else z.T * weight
    return np.asarray(np.linalg.solve(left @ z + _prior(z.shape[1]), left @ x))


def _prior(p: int) -> Floats:
    return np.diag([0.0] + [_PRIOR_ROWS] * (p - 1))


def draw_numbers(z: Floats, x: Floats, wanted: Floats, rng: np.random.Generator, posterior: bool = True) -> Floats:
    """Draw numbers from a linear regression whose parameters are drawn from their posterior, or are as fitted; (len(wanted),)."""
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
    """Draw one of the donors with the nearest predictions for each wanted prediction, (len(wanted),)."""
    k = min(n_donors, len(donor))
    order = np.argsort(donor, kind="stable")
    ordered = donor[order]
    at = np.searchsorted(ordered, wanted)  # the k nearest are within k places
    near = (at[:, None] + np.arange(-k, k)).clip(0, len(donor) - 1)
    distance = np.abs(ordered[near] - wanted[:, None])
    distance[:, 1:][near[:, 1:] == near[:, :-1]] = np.inf  # clipped at an end
    nearest = np.argsort(distance, axis=1, kind="stable")[:, :k]
    choice = nearest[np.arange(len(wanted)), rng.integers(k, size=len(wanted))]
    # Many donors may have the chosen prediction: draw from all of them, not only from those near in order.
    value = ordered[near[np.arange(len(wanted)), choice]]
    low, high = np.searchsorted(ordered, value, side="left"), np.searchsorted(ordered, value, side="right")
    return np.asarray(order[low + (rng.random(len(wanted)) * (high - low)).astype(np.intp)])


def draw_levels(
    levels: Floats, z: Floats, held: Floats, wanted: Floats, rng: np.random.Generator, posterior: bool = True
) -> Floats:
    """Draw levels by logistic regressions of each level against the rarer ones, parameters drawn or as fitted."""
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
            root = (vectors * np.sqrt(values.clip(0))) @ vectors.T  # unlike eigenvectors, it has one sign only
            theta = theta + root @ rng.normal(size=len(values))
        taken = open_ & (rng.random(len(wanted)) < expit(wanted @ theta))
        out[taken] = level
        left[left] = ~is_level
    return np.asarray(levels[out])


def _by_label(labels: Ints, group: IncompleteGroup, n_columns: int) -> list[tuple[Ints, Ints]]:
    """Pairs of rows to learn from and rows to fill, by their places among the present and the absent rows.

    A label class with enough rows has its own pair; the others learn from all rows, with the label as a column.
    """
    known, wanted = labels[group.present], labels[group.absent]
    count = np.bincount(known, minlength=int(labels.max()) + 1)
    alone = count >= ROWS_PER_COEFFICIENT * (n_columns + 1)
    pairs = [(np.flatnonzero(known == y), np.flatnonzero(wanted == y)) for y in np.flatnonzero(alone)]
    pairs.append((np.arange(len(known)), np.flatnonzero(~alone[wanted])))
    return [(learn, fill) for learn, fill in pairs if len(fill)]


def _design(columns: Floats, labels: Ints, learn: Ints, fill: Ints) -> Floats:
    """Intercept, standardised columns, and the label if it varies; the rows to learn from first."""
    rows = np.concatenate([learn, fill])
    one_hot = np.eye(int(labels.max()) + 1)[labels[rows]]
    varying = one_hot[: len(learn)].any(axis=0)
    one_hot = one_hot[:, varying & (varying.cumsum() > 1)]  # the first class is in the intercept
    return np.ascontiguousarray(logistic_design(np.column_stack([columns[rows], one_hot])))
