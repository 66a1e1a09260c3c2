"""The claims of the paper's section on results, each with the measured numbers and a verdict that it can fail.

Every claim is judged for the misclassification cost, which the paper calls J, and for the total cost, its J_total.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from .cells import FEWEST, Cells, Measured, NotRunError, cells_of, growth, measured
from .rules import AGREES, DISAGREES, UNDECIDED, above, below, inside, together
from .runner import Finished
from .summary import COSTS

__all__ = ["CLAIMS", "RULES", "Claim", "Verdict", "verdicts"]

Done = Mapping[str, Finished]
Judgement = tuple[str, str]  # the measured numbers as text, and agrees, disagrees or undecided

_BASELINES = ("imp-mean", "blocking", "cc")
_SYNTHETIC = ("synthetic-mar", "synthetic-mnar")
_PAPERS = ("ipw-semi", "dm-semi", "drl-semi")

_MATTERS = 0.05  # largest bias of an accurate estimate, as a share of J
_LARGE = 0.10  # largest root mean squared error of an accurate estimate, as a share of J
_COVERED = 0.90  # least coverage of a 95 % interval that is called right
_NEGLIGIBLE = 0.005  # a smaller bias does not show that an estimate converges to something else
_VISIBLE = 0.01  # a smaller bias could not be seen in the paper's figures
_SLOPE = -0.25  # the root mean squared error must fall at least like this power of the rows: half as fast as usual
_GAIN = 4.0  # times fewer rows: half the error with the same rows
_SLOW = 2.0  # times fewer rows that another estimator needs
_EQUAL = (0.5, 2.0)  # times fewer rows, for curves that are called equal
_NARROW = 0.9  # mean standard error over the standard deviation of the estimates, of an interval called too narrow

RULES = " ".join(
    (
        "A number agrees with its limit if it keeps the limit by two Monte Carlo errors, and disagrees if it misses the",
        f"limit by three. In between, and with fewer than {FEWEST} data sets, the verdict is *undecided*. A claim about",
        "several numbers disagrees if one of them disagrees. Monte Carlo errors come from the jackknife over data sets,",
        "because all agents and estimators share the data sets. An estimate is accurate if its bias is at most",
        f"{100 * _MATTERS:.0f} % of J and its root mean squared error (rmse) at most {100 * _LARGE:.0f} % of J. Its 95 %",
        f"intervals are right if they contain J in at least {100 * _COVERED:.0f} % of the data sets. A baseline is biased",
        f"if its bias exceeds {100 * _NEGLIGIBLE:.1f} % of J. An estimate converges if its bias at the largest size is at",
        f"most {100 * _MATTERS:.0f} % of J and its rmse falls at least like rows^{_SLOPE}; rows^-0.5 is usual. Much more",
        f"efficient means {_GAIN:.0f} times fewer rows, which is half the error. Equal curves mean a factor between",
        f"{_EQUAL[0]} and {_EQUAL[1]:.0f}. An interval is too narrow if the mean standard error is below {_NARROW}",
        f"standard deviations of the estimates. A slight bias exceeds {100 * _VISIBLE:.0f} % of J for at least half of the",
        f"agents and {100 * _LARGE:.0f} % for none. The limits are ours: the paper has figures, no numbers.",
    )
)


@dataclass(frozen=True)
class Verdict:
    """A claim of the paper, the target, the measured numbers, and the verdict on their agreement."""

    claim: str
    target: str
    measured: str
    verdict: str


@dataclass(frozen=True, eq=False)
class Claim:
    """A sentence of the paper, and the function that judges it for a target."""

    text: str
    judge: Callable[[Done, str], Judgement]


def verdicts(done: list[Finished]) -> list[Verdict]:
    """Return the verdict on every claim and target, from all five experiments."""
    by_name = {finished.description.name: finished for finished in done}
    return [Verdict(claim.text, target, *_judged(claim, by_name, target)) for claim in CLAIMS for target in COSTS]


def _judged(claim: Claim, done: Done, target: str) -> Judgement:
    """Judge a claim; results that lack a run that it needs give no verdict."""
    try:
        return claim.judge(done, target)
    except NotRunError as error:
        return str(error), "not run"


def _share(found: Measured) -> str:
    return f"{100 * found.value:+.1f} %{_plus_minus(100 * found.error, 1)}"


def _plus_minus(error: float, digits: int) -> str:
    return "" if np.isnan(error) else f" (± {error:.{digits}f})"


def _named(cells: Cells, found: Sequence[Measured]) -> Iterable[tuple[str, str, Measured]]:
    return ((a, e, m) for (a, e), m in zip(cells.names, found, strict=True))


def _of(found: Measured) -> Measured:
    """Return the size of a bias."""
    return Measured(abs(found.value), found.error)


# -- baselines ---------------------------------------------------------------------------------------------------------


def _baselines(done: Done, target: str) -> Judgement:
    """Every baseline must be biased, for every agent, on both synthetic problems."""
    biases = _baseline_biases(done, target)
    judged = {key: above(_of(bias), _NEGLIGIBLE) for key, bias in biases.items()}
    counts = "; ".join(
        f"`{b}` in {sum(v == AGREES for v in own)} of {len(own)}"
        for b in _BASELINES
        for own in [[v for k, v in judged.items() if k[2] == b]]
    )
    words = [f"Biased: {counts} cases of agent and problem."]
    odd = [f"{k[0]} {k[1]} `{k[2]}` {_share(biases[k])}" for k, v in judged.items() if v != AGREES]
    if odd:
        words.append(f"Not shown to be biased: {'; '.join(odd)}.")
    if target == "total" and (hidden := _cancelled(done, judged)):
        words.append(
            f"Biased in J, but not in J_total: {'; '.join(hidden)}. There, acquisitions that are not paid make up for errors "
            "that are counted too often."
        )
    return " ".join(words), together(judged.values())


def _baseline_biases(done: Done, target: str) -> dict[tuple[str, str, str], Measured]:
    out = {}
    for problem in _SYNTHETIC:
        cells = cells_of(done[problem].results, "convergence", target).take(estimators=_BASELINES)
        for agent, estimator, bias in _named(cells, measured(Cells.bias, cells)):
            out[problem, agent, estimator] = bias
    return out


def _cancelled(done: Done, judged: Mapping[tuple[str, str, str], str]) -> list[str]:
    own = _baseline_biases(done, "misclassification")
    return [
        f"{k[0]} {k[1]} `{k[2]}` ({_share(own[k])} of J)"
        for k, v in judged.items()
        if v != AGREES and above(_of(own[k]), _NEGLIGIBLE) == AGREES
    ]


# -- convergence and data efficiency -----------------------------------------------------------------------------------


def _convergence(finished: Finished, estimator: str, target: str) -> Judgement:
    """The bias at the largest size must be small, and the error must fall with the rows; for the worst agent."""
    sizes = sorted(finished.results.loc[finished.results["run"] == "convergence", "rows"].unique())
    cells = [cells_of(finished.results, "convergence", target, rows=int(n)).take(estimators=[estimator]) for n in sizes]
    errors = [measured(Cells.rmse, c) for c in cells]
    slopes = [growth(sizes, [e[k] for e in errors]) for k in range(len(cells[-1].names))]
    biases = measured(Cells.bias, cells[-1])
    worst, steepest = max(biases, key=lambda b: abs(b.value)), max(slopes, key=lambda s: s.value)
    verdict = together([*(below(_of(b), _MATTERS) for b in biases), *(below(s, _SLOPE) for s in slopes)])
    text = (
        f"{finished.description.name} `{estimator}`: at {int(sizes[-1]):,} rows the largest bias is {_share(worst)} of J; the "
        f"rmse falls at least like rows^{steepest.value:.2f}{_plus_minus(steepest.error, 2)}"
    )
    return text, verdict


def _ratio(finished: Finished, agent: str, estimator: str, target: str) -> tuple[float, float, float]:
    """Return how many times fewer rows an estimator needs, with its 95 % range; NaN if it is biased."""
    lines = finished.efficiency
    found = (
        (lines["run"] == "convergence")
        & (lines["target"] == target)
        & (lines["agent"] == agent)
        & (lines["estimator"] == estimator)
    )
    line = lines[found].iloc[0]
    return float(line["ratio"]), float(line["lower"]), float(line["upper"])


def _times(found: tuple[float, float, float]) -> str:
    return "never (biased)" if np.isnan(found[0]) else f"{found[0]:.1f} ({found[1]:.1f} to {found[2]:.1f})"


def _between(finished: Finished, found: tuple[float, float, float], low: float, high: float = float("inf")) -> str:
    """Judge a ratio by its range; a biased estimator disagrees, few data sets decide nothing."""
    if finished.results.loc[finished.results["run"] == "convergence", "draw"].nunique() < FEWEST:
        return UNDECIDED
    return DISAGREES if np.isnan(found[0]) else inside(found[1], found[2], (low, high))


def _miss_converges(done: Done, target: str) -> Judgement:
    found = [_convergence(done[name], "ipw-miss-gt", target) for name in _SYNTHETIC]
    ratio = _ratio(done["synthetic-mar"], "Random 10 %", "ipw-semi-gt", target)
    words = [text for text, _ in found] + [
        f"times fewer rows that `ipw-semi-gt` needs for Random 10 %: {_times(ratio)}"
    ]
    return "; ".join(words) + ".", together([*(v for _, v in found), _between(done["synthetic-mar"], ratio, _SLOW)])


def _semi_converges(done: Done, target: str) -> Judgement:
    names = zip(_SYNTHETIC, ("ipw-semi-gt", "ipw-semi-miss-gt"), strict=True)
    found = [_convergence(done[problem], estimator, target) for problem, estimator in names]
    return "; ".join(text for text, _ in found) + ".", together(v for _, v in found)


def _semi_gain(done: Done, target: str) -> Judgement:
    found = _ratio(done["synthetic-mar"], "Random 10 %", "ipw-semi-gt", target)
    learned = _ratio(done["synthetic-mar"], "Random 10 %", "ipw-semi", target)
    text = (
        f"Times fewer rows that `ipw-semi-gt` needs than `ipw-miss-gt` for the same error: {_times(found)}; with learned "
        f"propensities {_times(learned)}."
    )
    return text, _between(done["synthetic-mar"], found, _GAIN)


def _equal_curves(problem: str, estimator: str, done: Done, target: str) -> Judgement:
    found = _ratio(done[problem], "Random 90 %", estimator, target)
    return (
        f"Times fewer rows that `{estimator}` needs than `ipw-miss-gt` for the same error: {_times(found)}.",
        _between(done[problem], found, *_EQUAL),
    )


def _mnar_gain(done: Done, target: str) -> Judgement:
    """The gain under MNAR must be above 1 and below that under MAR; both are compared on logarithmic scales."""
    mar = _ratio(done["synthetic-mar"], "Random 10 %", "ipw-semi-gt", target)
    mnar = _ratio(done["synthetic-mnar"], "Random 10 %", "ipw-semi-miss-gt", target)
    text = f"Times fewer rows for Random 10 %: {_times(mar)} under MAR, {_times(mnar)} under MNAR."
    judged = [_between(done[name], found, 1.0) for name, found in zip(_SYNTHETIC, (mar, mnar), strict=True)]
    if np.isnan([mar[0], mnar[0]]).any():
        return text, together(judged)
    logs = np.log([mar, mnar])
    spread = float(np.hypot(*(logs[:, 2] - logs[:, 1])) / 3.92)
    smaller = below(Measured(float(logs[1, 0] - logs[0, 0]), spread), 0.0)
    return text, UNDECIDED if UNDECIDED in judged else together([smaller, *judged])


# -- accuracy and coverage ---------------------------------------------------------------------------------------------


def _accuracy(finished: Finished, target: str, estimators: Sequence[str]) -> Judgement:
    """Bias, error and coverage of all these estimators must keep the limits, for all agents."""
    every = cells_of(finished.results, "all estimators", target)
    cells = every.take(estimators=estimators)
    biases, errors = measured(Cells.bias, cells), measured(Cells.rmse, cells)
    judged = [below(_of(b), _MATTERS) for b in biases] + [below(e, _LARGE) for e in errors]
    a, e, bias = max(_named(cells, biases), key=lambda line: abs(line[2].value))
    words = [f"largest bias {_share(bias)} of J ({a}, `{e}`)"]
    a, e, error = max(_named(cells, errors), key=lambda line: line[2].value)
    words.append(f"largest rmse {100 * error.value:.1f} %{_plus_minus(100 * error.error, 1)} of J ({a}, `{e}`)")
    covered = []
    for name in estimators:
        own = cells.take(estimators=[name])
        if not own.with_interval.any():
            covered.append(f"`{name}` has no interval")
            continue
        share = measured(Cells.coverage, own)[0]
        judged.append(above(share, _COVERED))
        covered.append(f"`{name}` {100 * share.value:.0f} %{_plus_minus(100 * share.error, 0)}")
    words.append(f"intervals that contain J: {', '.join(covered)}")
    return f"{finished.description.name}: {'; '.join(words)}.{_better_baselines(every, estimators)}", together(judged)


def _better_baselines(cells: Cells, estimators: Sequence[str]) -> str:
    """Say where a biased baseline has a smaller error than these estimators, and give the largest factor."""
    error = dict(zip(cells.names, cells.rmse(), strict=True))
    pairs = [
        (error[a, e] / max(error[a, b], 1e-12), a, e, b)
        for a, e in cells.names
        if e in estimators
        for b in _BASELINES
        if (a, b) in error and error[a, b] < error[a, e]
    ]
    if not pairs:
        return ""
    factor, a, e, b = max(pairs)
    n = len({(agent, name) for _, agent, name, _ in pairs})
    return (
        f" In {n} of {sum(name in estimators for _, name in cells.names)} cases a biased baseline has a smaller rmse, at most by "
        f"the factor {factor:.1f} ({a}: `{b}` {100 * error[a, b]:.1f} %, `{e}` {100 * error[a, e]:.1f} % of J)."
    )


def _synthetic_accuracy(done: Done, target: str) -> Judgement:
    return _accuracy(done["synthetic-mar"], target, ["ipw-semi", "ipw-semi-gt", "dm-semi", "drl-semi", "drl-semi-gt"])


def _real_accuracy(name: str, done: Done, target: str) -> Judgement:
    text, verdict = _accuracy(done[name], target, ["ipw-semi", "ipw-semi-gt", "drl-semi"])
    if name == "heloc":
        text += (
            " Two fifths of the rows are complete with a probability below 0.1 %, so positivity almost fails, and wide "
            "intervals can contain J although the estimates are far from it."
        )
    return text, verdict


def _slight_bias(name: str, done: Done, target: str) -> Judgement:
    """A bias must be visible for at least half of the agents, and large for none."""
    cells = cells_of(done[name].results, "the paper's settings", target).take(estimators=["dm-semi"])
    found = list(_named(cells, measured(Cells.bias, cells)))
    text = ", ".join(f"{a} {_share(bias)}" for a, _, bias in found)
    visible = [above(_of(bias), _VISIBLE) for *_, bias in found]
    needed = (len(visible) + 1) // 2
    enough = (
        AGREES
        if visible.count(AGREES) >= needed
        else DISAGREES
        if len(visible) - visible.count(DISAGREES) < needed
        else UNDECIDED
    )
    return f"Bias of `dm-semi` with the paper's network, as a share of J: {text}.", together(
        [enough, *(below(_of(bias), _LARGE) for *_, bias in found)]
    )


# -- intervals of the frozen bootstrap ---------------------------------------------------------------------------------


def _frozen(done: Done, target: str) -> tuple[str, list[Measured]]:
    """Return how wide the intervals are by estimator, and by how much each of the others is wider than that of DM."""
    cells = cells_of(done["synthetic-mar"].results, "the paper's settings", target)
    names = [name for name in _PAPERS if any(e == name for _, e in cells.names)]
    parts = partial(_narrowness, names)
    found = measured(parts, cells)
    covered = [measured(Cells.coverage, cells.take(estimators=[name]))[0] for name in names]
    text = "; ".join(
        f"`{name}` {one.value:.2f}{_plus_minus(one.error, 2)}, {100 * share.value:.0f} %{_plus_minus(100 * share.error, 0)} "
        "contain J"
        for name, one, share in zip(names, found[: len(names)], covered, strict=True)
    )
    return f"Mean standard error over the standard deviation of the estimates: {text}.", found


def _narrowness(names: Sequence[str], cells: Cells) -> np.ndarray:
    """Narrowness of each estimator, then of DM minus each of the others."""
    own = {name: cells.take(estimators=[name]).narrowness() for name in names}
    return np.array([*own.values(), *(own["dm-semi"] - v for k, v in own.items() if k != "dm-semi")])


def _too_narrow(done: Done, target: str) -> Judgement:
    text, found = _frozen(done, target)
    return text, together(below(one, _NARROW) for one in found[: len(_PAPERS)])


def _narrowest(done: Done, target: str) -> Judgement:
    text, found = _frozen(done, target)
    return text, together(below(one, 0.0) for one in found[len(_PAPERS) :])


# -- double robustness -------------------------------------------------------------------------------------------------


def _robust(done: Done, target: str) -> Judgement:
    """One wrong nuisance must not matter to `drl-semi` but to the single estimators, and two must matter to it."""
    required = {  # estimator and setting: does its bias keep the limit?
        ("drl-semi", "both right"): below,
        ("drl-semi", "propensity wrong"): below,
        ("drl-semi", "values wrong"): below,
        ("ipw-semi", "propensity wrong"): above,
        ("dm-semi", "values wrong"): above,
        ("drl-semi", "both wrong"): above,
    }
    words, judged = [], []
    for (estimator, setting), rule in required.items():
        cells = cells_of(done["double-robustness"].results, setting, target).take(estimators=[estimator])
        biases = measured(Cells.bias, cells)
        judged += [rule(_of(bias), _MATTERS) for bias in biases]
        each = ", ".join(f"{a} {_share(bias)}" for a, _, bias in _named(cells, biases))
        wanted = "small" if rule is below else "large"
        words.append(f"`{estimator}`, {setting} (must be {wanted}): {each}")
    return f"Bias as a share of J: {'; '.join(words)}.", together(judged)


CLAIMS = (
    Claim("Mean imputation, blocking and complete cases are biased and do not converge to J (Figure 2).", _baselines),
    Claim("`ipw-miss` converges to J, but slowly (Figure 2).", _miss_converges),
    Claim("`ipw-semi-gt` under MAR and `ipw-semi-miss-gt` under MNAR converge to J (Figure 2).", _semi_converges),
    Claim("For the 10 % agent `ipw-semi` is much more data efficient than `ipw-miss` (Figure 2A).", _semi_gain),
    Claim(
        "For the 90 % agent the curves of `ipw-semi` and `ipw-miss` are nearly equal under MAR (Figure 2A).",
        partial(_equal_curves, "synthetic-mar", "ipw-semi-gt"),
    ),
    Claim(
        "For the 90 % agent the curves of `ipw-semi-miss` and `ipw-miss` are nearly equal under MNAR (Figure 2B).",
        partial(_equal_curves, "synthetic-mnar", "ipw-semi-miss-gt"),
    ),
    Claim("The gain is smaller under MNAR, where weights need further values to be recorded.", _mnar_gain),
    Claim("All semi-offline estimators approximate J well on the synthetic problem (Figure 3A).", _synthetic_accuracy),
    Claim("Intervals of a bootstrap without refits are too narrow (Figure 3A).", _too_narrow),
    Claim("Among these intervals, those of the direct method are the narrowest for their error.", _narrowest),
    Claim("`drl-semi` is approximately right if only one nuisance is wrong (Figure 3B).", _robust),
    Claim("Semi-offline estimators agree with J on Heloc (Figure 4A).", partial(_real_accuracy, "heloc")),
    Claim("Semi-offline estimators agree with J on Income (Figure 4B).", partial(_real_accuracy, "income")),
    Claim("`dm-semi` has a slight bias on Heloc.", partial(_slight_bias, "heloc")),
    Claim("`dm-semi` has a slight bias on Income.", partial(_slight_bias, "income")),
)
