"""The study of the search for support: alarms where recording is smooth, and holes that are named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import rankdata

from afape._arrays import Bools, Floats, Ints
from afape.benchmark.draws import run_draws
from afape.benchmark.page import markdown
from afape.data.problem import Problem
from afape.data.retrospective import Retrospective
from afape.missingness.assumptions import MAR
from afape.support.search import Findings, SupportSearch
from afape.support.thresholds import DEFAULT_THRESHOLDS

__all__ = ["SIZES", "support_study"]

SIZES = (2000, 8000, 32_000)
_DISTRIBUTIONS = ("normal", "uniform", "t3", "t2", "lognormal")
_FORMS = ("mild", "steep", "product", "bump", "rare", "square")
_SHAPES = ("low", "high", "middle", "box", "slanted", "level")
_FALSE, _GROSSLY = 2.0, 5.0  # an alarm is false if the true mean probability exceeds this multiple of the threshold
_LEAST_ROWS = 350  # rows of a hole, at least: 274 rows without the set contradict a probability of 0.02


def support_study(
    out: Path,
    n_draws: int,
    sizes: Sequence[int] = SIZES,
    n_jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Draw ``n_draws`` data sets of every kind and size; write the shares of alarms and a page."""
    found = []
    for i, n_rows in enumerate(sizes):
        folder = out / f"draws-{n_rows}"
        records = run_draws(
            partial(_draw, n_rows), n_draws, folder, f"support of {n_rows} rows", n_jobs=n_jobs, batch=5
        )
        found.append(records.assign(rows=n_rows))
        if progress is not None:
            progress(i + 1, len(sizes))
    summary = _summary(pd.concat(found, ignore_index=True))
    out.mkdir(parents=True, exist_ok=True)
    summary.to_csv(out / "summary.csv", index=False)
    _write_page(summary, out, n_draws, sizes)
    return summary


def _draw(n_rows: int, k: int) -> list[dict[str, Any]]:
    """Records of data set k of every kind: what the search called unsupported or undecided."""
    out = []
    for d, distribution in enumerate(_DISTRIBUTIONS):
        for f, form in enumerate(_FORMS):
            rng = np.random.default_rng([k, n_rows, d, f])
            x = _columns(distribution, n_rows, rng)
            chances = np.column_stack([_chance(form, x), _chance("mild", x[:, ::-1])])
            found = _search(x, rng.integers(4, size=n_rows), rng.random((n_rows, 2)) < chances, rng)
            means = [chances[v.rows][:, v.required[1:]].prod(axis=1).mean() for v in found.unsupported.violations]
            worst = max(means, default=0.0)
            out.append(
                _record("smooth", distribution, form)
                | {
                    "alarm": float(len(found.unsupported.violations) > 0),
                    "false": float(worst > _FALSE * DEFAULT_THRESHOLDS.propensity),
                    "grossly_false": float(worst > _GROSSLY * DEFAULT_THRESHOLDS.propensity),
                    "undecided": float(len(found.undecided.violations) > 0),
                }
            )
    for s, shape in enumerate(_SHAPES):
        for d, distribution in enumerate(("normal", "t3")):
            rng = np.random.default_rng([k, n_rows, d, 100 + s])
            out.append(
                _record("hole", distribution, shape) | {"named": float(_named(shape, distribution, n_rows, rng))}
            )
    return out


def _record(kind: str, distribution: str, form: str) -> dict[str, Any]:
    return {"kind": kind, "columns": distribution, "form": form}


def _columns(distribution: str, n: int, rng: np.random.Generator) -> Floats:
    """Two columns that recording depends on, (n, 2)."""
    if distribution == "uniform":
        return rng.uniform(-2, 2, size=(n, 2))
    if distribution.startswith("t"):
        return np.asarray(rng.standard_t(int(distribution[1:]), size=(n, 2)))
    x = rng.normal(size=(n, 2))
    return np.exp(x) if distribution == "lognormal" else x


def _chance(form: str, x: Floats) -> Floats:
    """Smooth probability of being recorded, (n,)."""
    a, b = x.T
    if form == "mild":
        return np.asarray(expit(0.5 * a - 0.1))
    if form == "steep":
        return np.asarray(expit(2 * a + 0.5 * b - 0.5))
    if form == "product":
        return np.asarray(expit(0.5 + a) * expit(0.3 - 0.8 * b) * expit(0.2 + 0.7 * a + 0.7 * b))
    if form == "bump":
        return np.asarray(expit(1 + 1.5 * a) * expit(1 - 1.5 * a))
    if form == "rare":
        return np.asarray(expit(0.7 * a - 0.5 * b - 3))
    return np.asarray(expit(-1 - 0.5 * a - 0.3 * a**2))


def _named(shape: str, distribution: str, n: int, rng: np.random.Generator) -> bool:
    """True if the search names the set of a hole, and the rows that it names are mostly those of the hole."""
    x, ward = _columns(distribution, n, rng), rng.integers(4, size=n)
    part = rng.uniform(max(0.1, _LEAST_ROWS / n), 0.5)
    hole = _hole(shape, x, ward, part, rng)
    recorded = rng.random((n, 2)) < np.column_stack([_chance("mild", x), _chance("mild", x[:, ::-1])])
    required = np.array([True, bool(rng.integers(2))])  # a group, or a pair whose groups are recorded alone
    whole = hole & recorded[:, required].all(axis=1) & (rng.random(n) >= rng.choice([0.0, 0.0005]))
    recorded[whole, rng.choice(np.flatnonzero(required), size=int(whole.sum()))] = False
    for violation in _search(x, ward, recorded, rng).unsupported.violations:
        both, either = (violation.rows & hole).sum(), (violation.rows | hole).sum()
        if (violation.required[1:] == required).all() and 2 * both > either:
            return True
    return False


def _hole(shape: str, x: Floats, ward: Ints, part: float, rng: np.random.Generator) -> Bools:
    """About a share ``part`` of the rows, (n,)."""
    rank = np.column_stack([rankdata(column) / len(column) for column in x.T])
    if shape == "level":
        return np.asarray(ward == rng.integers(4))
    if shape == "box":
        return np.asarray((rank[:, 0] < np.sqrt(part)) & (rank[:, 1] > 1 - np.sqrt(part)))
    if shape == "slanted":
        angle = np.pi * (0.1 + 0.3 * rng.random()) + rng.integers(4) * np.pi / 2
        score = np.clip(x, -8, 8) @ np.array([np.cos(angle), np.sin(angle)])
        return np.asarray(rankdata(score) / len(x) > 1 - part)
    start = {"low": 0.0, "high": 1 - part, "middle": (1 - part) * rng.uniform(0.2, 0.8)}[shape]
    return np.asarray((rank[:, 0] > start) & (rank[:, 0] <= start + part))


def _search(x: Floats, ward: Ints, recorded: Bools, rng: np.random.Generator) -> Findings:
    """Search all three sets of two groups, in regions of two columns and of a category with four levels."""
    n = len(x)
    hidden = np.where(recorded, rng.normal(size=(n, 2)), np.nan)
    frame = pd.DataFrame(
        {"a": x[:, 0], "b": x[:, 1], "ward": [f"w{w}" for w in ward], "g1": hidden[:, 0], "g2": hidden[:, 1]}
    )
    problem = Problem({"base": ["a", "b", "ward"], "g1": ["g1"], "g2": ["g2"]}, {"g1": 1.0, "g2": 1.0}, "y", 1.0)
    data = Retrospective(frame.assign(y=rng.integers(0, 2, n)), problem)
    sets = np.array([[True, True, False], [True, False, True], [True, True, True]])
    search = SupportSearch(
        data, MAR(given=["base"]).conditioning(data, np.array([True, True, True])), DEFAULT_THRESHOLDS
    )
    return search.of_sets(sets, np.zeros(3, dtype=bool))


def _summary(records: pd.DataFrame) -> pd.DataFrame:
    """Shares of the data sets by kind, columns, form and rows."""
    shares = ["alarm", "false", "grossly_false", "undecided", "named"]
    grouped = records.groupby(["kind", "columns", "form", "rows"], sort=False)
    return grouped[shares].mean().assign(draws=grouped.size()).reset_index()


def _write_page(summary: pd.DataFrame, out: Path, n_draws: int, sizes: Sequence[int]) -> None:
    smooth, holes = summary[summary["kind"] == "smooth"], summary[summary["kind"] == "hole"]
    rows = "".join(f" --rows {n}" for n in sizes)
    (out / "README.md").write_text(
        f"# Search for support\n\nMade by `python -m studies support --draws {n_draws}{rows}`: {n_draws:,} data sets per line "
        "and size, with two columns, a category of four levels and two groups; all three sets of groups are searched. "
        "`summary.csv` has all numbers.\n\n"
        "## Recording is smooth\n\n"
        f"{len(_DISTRIBUTIONS)} distributions of the columns and {len(_FORMS)} smooth probabilities of being recorded. "
        "*False* are data sets with an alarm in a region whose true mean probability is above 0.002, twice the threshold; "
        "*far off* are those above 0.005. Other alarms are right: far out in a heavy tail the probability is below the "
        "threshold. *Undecided* regions are reported, but estimates treat them as supported.\n\n"
        f"{markdown(_shares(smooth, ['rows'], ['alarm', 'false', 'grossly_false', 'undecided']))}\n\n"
        f"{markdown(_shares(smooth, ['columns', 'form', 'rows'], ['alarm', 'false', 'undecided'], least=True))}\n\n"
        "## Holes\n\n"
        "A set is recorded with probability 0 or 0.0005 in 10 to 50 % of the rows (at least 350 rows), and smoothly elsewhere. "
        "*Named* are the data sets in which the search names the set, with rows that are mostly those of the hole.\n\n"
        f"{markdown(_shares(holes, ['form', 'rows'], ['named']))}\n"
    )


def _shares(summary: pd.DataFrame, by: list[str], columns: list[str], least: bool = False) -> pd.DataFrame:
    """Shares in percent, with the number of data sets; with ``least``, only lines with an alarm."""
    grouped = summary.groupby(by, sort=False)
    counts = grouped["draws"].sum().rename("data sets")
    mean = grouped[columns].mean()
    shown = mean[mean["alarm"] > 0] if least else mean
    named = {"grossly_false": "far off"}
    texts = shown.map(lambda share: f"{100 * share:.3g} %").rename(columns=named)
    return texts.join(counts).reset_index()
