"""The study of intervals of weighted means: which ones hold when rows are few, weights heavy, or errors unseen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import ndtri, stdtrit

from afape._arrays import concentration, effective_size
from afape.benchmark.page import markdown
from afape.estimators.estimate import Estimate
from studies.interval_worlds import SINGLES, Rows, pairs, rows_of
from studies.simulation import Task

__all__ = ["estimate_of", "intervals_study"]

_SIZES = (40, 200, 1000, 3000)
_LARGE = 2_000_000  # rows that give the truth
_BANDS = (0, 10, 20, 30, 50, 100, 200, np.inf)  # of effective rows
_LIKELIHOODS = 400  # draws for empirical likelihood, which is slow
_Z = float(ndtri(0.975))


def estimate_of(rows: Rows) -> Estimate:
    """Return the normalised weighted mean, with the concentration of its weights."""
    weight, cost = rows.weight, rows.cost
    value = float(weight @ cost / weight.sum())
    influence = weight * (cost - value) / weight.mean()
    dense = concentration(weight, None)
    return Estimate(value, influence, None, "rows", limits=rows.limits, concentration=dense)


def _student(rows: Rows) -> tuple[float, float]:
    return replace(estimate_of(rows), concentration=0.0).interval()


def _normal(rows: Rows) -> tuple[float, float]:
    found = estimate_of(rows)
    half = _Z * found.std_error
    return _cut(found.value - half, found.value + half, rows.limits)


def _cut(low: float, high: float, limits: tuple[float, float]) -> tuple[float, float]:
    return float(np.clip(low, *limits)), float(np.clip(high, *limits))


def _likelihood(rows: Rows) -> tuple[float, float]:
    """Return the interval of empirical likelihood, with quantile t squared."""
    used = rows.weight > 0
    weight, cost = rows.weight[used] / rows.weight.mean(), rows.cost[used]
    found = estimate_of(rows)
    if found.std_error == 0:
        return found.value, found.value
    limit = float(stdtrit(found.degrees_of_freedom, 0.975)) ** 2

    def statistic(theta: float) -> float:
        g = weight * (cost - theta)
        if g.max() <= 0 or g.min() >= 0:
            return np.inf
        low, high = -(1 - 1e-9) / g.max(), (1 - 1e-9) / -g.min()
        slope = brentq(lambda a: float((g / (1 + a * g)).sum()), low, high, xtol=1e-12)
        return float(2 * np.log1p(slope * g).sum())

    ends = []
    for far in (cost.min(), cost.max()):
        a, b = found.value, float(far)
        for _ in range(40):
            middle = (a + b) / 2
            a, b = (middle, b) if statistic(middle) < limit else (a, middle)
        ends.append(a)
    return _cut(min(ends), max(ends), rows.limits)


def _truncated(rows: Rows) -> tuple[float, float]:
    """Return the shortest interval with cut weights, which contains the largest bias that the limits allow."""
    total, out = rows.weight.sum(), (-np.inf, np.inf)
    for share in (1.0, 0.5, 0.25, 0.1, 0.05, 0.02):
        cut = np.minimum(rows.weight, share * rows.weight.max())
        value, lost = float(cut @ rows.cost / total), float(1 - cut.sum() / total)
        error = float(np.sqrt((((cut * rows.cost - value * rows.weight) / total) ** 2).sum()))
        low = value + rows.limits[0] * lost - _Z * error
        high = value + rows.limits[1] * lost + _Z * error
        out = (low, high) if high - low < out[1] - out[0] else out
    return _cut(*out, rows.limits)


def _dense(change: Callable[[Rows, float], float]) -> Callable[[Rows], tuple[float, float]]:
    """Return the interval of `Estimate` with another concentration."""

    def interval(rows: Rows) -> tuple[float, float]:
        found = estimate_of(rows)
        return replace(found, concentration=change(rows, found.concentration)).interval()

    return interval


def _kish(rows: Rows, _: float) -> float:
    return 1 / effective_size(rows.weight, None)


def _from_100(rows: Rows, dense: float) -> float:
    varies = estimate_of(rows).std_error > 0
    return max(dense - 1 / 200, 0.0) if varies else dense


_METHODS: dict[str, Callable[[Rows], tuple[float, float]]] = {
    "normal": _normal,
    "Student": _student,
    "empirical likelihood": _likelihood,
    "truncation": _truncated,
    "unseen, 1/ess": _dense(_kish),
    "unseen, from 100 rows": _dense(_from_100),
    "unseen, all": _dense(lambda _, dense: dense + 1 / 200),
    "unseen": lambda rows: estimate_of(rows).interval(),
}


class _Line(NamedTuple):
    rows: int
    world: str
    method: str
    draw: int
    effective: float
    covered: bool
    length: float


def _single(n: int, name: str, n_draws: int) -> Iterator[_Line]:
    make, rng = SINGLES[name], np.random.default_rng([11, n])
    truth = float(make(np.random.default_rng(9), _LARGE).cost.mean())
    for k in range(n_draws):
        rows = rows_of(make(rng, n), rng)
        if not rows.weight.any():
            continue
        effective = effective_size(rows.weight, None)
        for method, interval in _METHODS.items():
            if interval is _likelihood and k >= _LIKELIHOODS:
                continue
            low, high = interval(rows)
            yield _Line(n, name, method, k, effective, low - 1e-9 <= truth <= high + 1e-9, high - low)


def _differences(n: int, n_draws: int) -> Iterator[_Line]:
    truth = {name: float(a.mean() - b.mean()) for name, _, a, _, b, _ in pairs(np.random.default_rng(5), _LARGE)}
    rng = np.random.default_rng([12, n])
    for k in range(n_draws):
        for name, first, a, second, b, limits in pairs(rng, n):
            recorded = rng.geometric(0.2, size=n) - 1  # groups recorded before the first gap
            both = [
                Rows(
                    (recorded >= wanted) / 0.8 ** wanted.astype(float), np.where(recorded >= wanted, cost, 0.0), limits
                )
                for wanted, cost in ((first, a), (second, b))
            ]
            if not all(rows.weight.any() for rows in both):
                continue
            effective = min(effective_size(rows.weight, None) for rows in both)
            one, two = (estimate_of(rows) for rows in both)
            plain = replace(one, concentration=0.0) - replace(two, concentration=0.0)
            methods = {"Student": plain, "limits of both": replace(one - two, pair=None), "unseen": one - two}
            for method, found in methods.items():
                low, high = found.interval()
                yield _Line(n, name, method, k, effective, low - 1e-9 <= truth[name] <= high + 1e-9, high - low)


def intervals_study(task: Task) -> pd.DataFrame:
    """Compare intervals of weighted means, and of their differences, by coverage and length."""
    task.out.mkdir(parents=True, exist_ok=True)
    lines: list[tuple[object, ...]] = []
    todo = [(n, name) for n in _SIZES for name in (*SINGLES, "")]
    for done, (n, name) in enumerate(todo):
        found = _single(n, name, task.n_draws) if name else _differences(n, task.n_draws)
        lines += [("mean" if name else "difference", *line) for line in found]
        if task.progress is not None:
            task.progress(done + 1, len(todo))
    draws = pd.DataFrame(lines, columns=["quantity", *_Line._fields])
    summary = _summary(draws, ["quantity", "rows", "world", "method"])
    summary.to_csv(task.out / "summary.csv", index=False, float_format="%.5g")
    bands = pd.cut(draws["effective"], _BANDS, right=False).astype(str)
    by_rows = _summary(draws.assign(effective=bands), ["quantity", "effective", "method"])
    _write_page(summary, by_rows, task)
    return summary


def _summary(draws: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return coverage, its Monte Carlo error and mean length divided by that of Student's interval on the same draws."""
    student = draws[draws["method"] == "Student"].set_index(["quantity", "rows", "world", "draw"])["length"]
    places = pd.MultiIndex.from_frame(draws[["quantity", "rows", "world", "draw"]])
    groups = draws.assign(student=student.reindex(places).to_numpy()).groupby(keys, sort=False)
    found = groups.agg(
        draws=("covered", "size"), coverage=("covered", "mean"), length=("length", "mean"), student=("student", "mean")
    )
    found["coverage_mc_error"] = np.sqrt(found["coverage"] * (1 - found["coverage"]) / found["draws"])
    return found.assign(relative_length=found["length"] / found["student"]).drop(columns="student").reset_index()


def _wide(summary: pd.DataFrame, index: list[str], quantity: str) -> pd.DataFrame:
    """Return a table with one line per world and one column per method: coverage in percent and relative length."""
    own = summary[summary["quantity"] == quantity]
    text = [f"{100 * c:.1f} ({r:.2f})" for c, r in zip(own["coverage"], own["relative_length"], strict=True)]
    wide = own.assign(text=text).pivot_table(index=index, columns="method", values="text", aggfunc="first", sort=False)
    return wide.reset_index().fillna("")


def _overall(summary: pd.DataFrame, quantity: str) -> pd.DataFrame:
    own = summary[summary["quantity"] == quantity]
    lines = []
    for (n, method), part in own.groupby(["rows", "method"], sort=False):
        c = 100 * part["coverage"]
        numbers = f"{c.mean():.1f}, least {c.min():.1f} ({part['relative_length'].mean():.2f})"
        lines.append({"rows": n, "method": method, "text": numbers})
    wide = pd.DataFrame(lines).pivot_table(index="rows", columns="method", values="text", aggfunc="first", sort=False)
    return wide.reset_index()


def _write_page(summary: pd.DataFrame, by_rows: pd.DataFrame, task: Task) -> None:
    own = by_rows[by_rows["quantity"] == "difference"]
    bands = own.sort_values(
        "effective", key=lambda text: text.str.extract(r"([0-9.]+)")[0].astype(float), kind="stable"
    )
    (task.out / "README.md").write_text(
        "# Intervals of weighted means\n\n"
        f"Made by `python -m studies intervals --draws {task.n_draws}`: rows are recorded with known probability, the estimate "
        "is the normalised weighted mean of their costs. Each cell has the coverage of 95 % intervals in percent and, in "
        "brackets, the mean length divided by that of Student's interval. `summary.csv` has all numbers.\n\n"
        "- *normal*, *Student*: standard error from influence values; Student with effective degrees of freedom.\n"
        "- *empirical likelihood*: with the quantile of Student. *truncation*: heavy weights are cut, and the interval contains "
        "the largest bias that the limits of the cost allow; the shortest of several cuts.\n"
        "- *unseen*: the interval of `afape.Estimate`. Its variance at a cost x away from the estimate contains what rows like "
        "those that carry the variance did not show, at most the limit of the cost. Variants: *1/ess* takes the share of a "
        "typical row from Kish's effective rows, *from 100 rows* subtracts 1/100 from it instead of 1/200, *all* also "
        "lengthens intervals with light weights.\n\n"
        f"## Means: average over worlds, and least\n\n{markdown(_overall(summary, 'mean'))}\n\n"
        f"## Means: each world\n\n{markdown(_wide(summary, ['rows', 'world'], 'mean'))}\n\n"
        "## Differences of two policies\n\n*limits of both* treats a difference like a cost with limits; *unseen* combines the "
        "excess of both intervals over Student's (Zou and Donner 2008).\n\n"
        f"{markdown(_overall(summary, 'difference'))}\n\n{markdown(_wide(summary, ['rows', 'world'], 'difference'))}\n\n"
        "## Differences by effective rows of the policy with fewer\n\nBelow 50 effective rows Student's interval is not reliable "
        "and the honest one is long, so policies are not ranked there.\n\n"
        f"{markdown(_wide(bands, ['effective'], 'difference'))}\n"
    )
