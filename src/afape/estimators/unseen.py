"""Intervals that allow for costs that the heaviest rows did not show."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri, stdtrit

__all__ = ["ENOUGH_ROWS", "LIGHT", "Reach", "combined_excess", "reach"]

LIGHT = 1 / 200  # concentration below which the interval is Student's; chosen by `python -m studies intervals`
ENOUGH_ROWS = 50  # effective rows below which policies are not ranked; chosen by the same study

Reach = tuple[float, float]  # distances downwards and upwards


def reach(tail: float, error: float, freedom: float, room: Reach, concentration: float) -> Reach:
    r"""Return the distances from an estimate to both ends of its interval, each with error probability ``tail``.

    Costs that were not seen lie in rows like those that carry the variance, and at most at the limit of what is possible. So
    the variance at a cost that is x away from the estimate is :math:`se^2 + \kappa x (d - x)`, with d the distance
    to the limit, and the ends solve

    .. math:: x^2 = t^2 \, se^2 + z^2 \kappa \, x (d - x),

    with t the quantile of Student's t and z that of the normal distribution. For a plain share without events
    :math:`\kappa = 1/n` and :math:`x = z^2 / (n + z^2)`, as in Wilson's interval. With light weights the interval is
    Student's: 1/200 is subtracted from :math:`\kappa`, unless the standard error is 0.

    Parameters
    ----------
    tail : float
        Error probability of one end.
    error, freedom : float
        Standard error, and degrees of freedom of t.
    room : tuple of float
        d, distance to the least and to the largest possible cost.
    concentration : float
        :math:`\kappa`, see `afape._arrays.concentration`.
    """
    plain = -float(stdtrit(freedom, tail)) * error if error > 0 else 0.0 * error
    share = max(concentration - LIGHT, 0.0) if error > 0 else concentration
    below, above = (_end(plain, float(ndtri(tail)) ** 2 * share, distance) for distance in room)
    return below, above


def _end(plain: float, share: float, room: float) -> float:
    """Solve :math:`x^2 = p^2 + s x (d - x)` for x; p is ``plain``, s ``share``, d ``room``."""
    if share == 0 or np.isnan(plain):
        return plain
    if np.isinf(room):  # nothing is known about costs that were not seen; if none varied, nothing is known at all
        return plain if plain > 0 else room
    half = share * max(room, 0.0) / 2
    return float((half + np.sqrt(half**2 + (1 + share) * plain**2)) / (1 + share))


def combined_excess(a: Reach, b: Reach, correlation: float) -> Reach:
    r"""Excess of the interval of A + B over Student's, from the excesses of A and B.

    .. math:: e^2 = e_A^2 + e_B^2 + 2 \rho \, e_A e_B

    as in the method of Zou and Donner (2008), which combines intervals that are not symmetric. Only correlations that
    cancel count, so :math:`\rho` is at most 0.
    """
    rho = min(max(correlation, -1.0), 0.0)
    below, above = (float(np.sqrt(max(x * x + y * y + 2 * rho * x * y, 0.0))) for x, y in zip(a, b, strict=True))
    return below, above
