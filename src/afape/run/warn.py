"""Warnings, notes and tables about reasons to doubt an estimate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.special import stdtr

from .._arrays import effective_size, share_of_heaviest
from .._models import takes_weights
from ..action_values.models import LearnedValues, PaperNetwork
from ..data.extreme_values import limit_extreme_values
from ..estimators.answer import Answer
from ..estimators.catalogue import Choice
from ..estimators.constant_answer import dearer_than_constant, label_amounts
from ..estimators.estimate import Estimate
from ..estimators.evidence import Fitted
from ..estimators.ipw import inverse_probability
from ..imputation.imputers import SklearnImputer
from ..missingness.assumptions import MNAR
from ..propensity.binding import Propensities
from ..propensity.learned import LearnedPropensity
from ..support.implications import label_findings, label_suspected
from ..support.support import WEIGHT_COLUMNS, Support
from ..support.thresholds import few_rows_dominate
from ..support.wording import balance_words, dominated_words, normalizer_words
from ..warnings import (
    AssumptionWarning,
    BalanceWarning,
    ClippedWeightsWarning,
    FarValuesWarning,
    HeavyWeightsWarning,
    LongRunWarning,
    NormalizerWarning,
    PropensityFitWarning,
    SupportWarning,
    UselessClassifierWarning,
    ValueFallbackWarning,
    warn,
)
from .fit import steps_of
from .plan import Plan, name_of, on_records
from .walk import Walked, walk_policies

__all__ = [
    "gap_of_nothing",
    "labels_note",
    "levels_note",
    "repeats_note",
    "warn_of_assumption",
    "warn_of_classifier",
    "warn_of_doubts",
    "warn_of_extreme_values",
    "warn_of_time",
    "warn_of_weights",
    "weight_table",
    "weights_note",
    "with_caveats",
    "with_heavy_estimators",
    "with_weightless_models",
]

_DOUBTED = 0.01  # p-value below which a gap is significant
_OFF, _FAR_OFF = 0.1, 0.3  # distance of a mean weight from 1 that gives a warning: if significant, and in any case
_LONG = 300  # seconds


def warn_of_assumption(plan: Plan, walked: Iterable[Walked], propensities: Propensities) -> None:
    """Warn if the label predicts which groups are recorded, although the assumption excludes this."""
    data, given = plan.data, propensities.conditioning
    wanted = np.any([w.wanted.any(axis=0) for w in walked], axis=0) & ~data.always_recorded
    records = data.original or data
    wanted[len(records.problem.group_names) :] = False  # the label itself
    if given.label or not wanted.any() or len(records.classes) < 2:
        return
    quick = records is data and not isinstance(plan.missingness, MNAR)
    if quick and not label_suspected(data, given, np.flatnonzero(wanted)):
        return
    names = [data.problem.group_names[g] for g in np.flatnonzero(wanted)]
    if text := label_findings(data, plan.missingness, names):
        warn(text, AssumptionWarning)


def warn_of_extreme_values(plan: Plan) -> None:
    """Warn about values that are moved because one of them would decide a regression or an imputation model."""
    values = plan.recipe.values
    ridge = isinstance(values, LearnedValues) and values.regressor.linear
    methods = [(c.name, c.method) for c in plan.choices]
    concerned = [name for name, m in methods if (m.valued and ridge) or m.composed or m.imputes]
    if not concerned:
        return
    count = limit_extreme_values(plan.data.values)[1]
    if not count.any():
        return
    columns = ", ".join(
        f"{plan.data.columns[j]!r} ({count[j]} of {len(plan.data)} rows)" for j in np.flatnonzero(count)
    )
    warn(
        f"Some values are at least five times as far from the median as all others: {columns}. As inputs of the models behind "
        f"{', '.join(concerned)} they are moved to the nearest other value of the column; policy and classifier get them as they "
        "are. Correct them if they are typing errors; if they are real, take logarithms.",
        FarValuesWarning,
    )


def weight_table(answers: dict[str, Answer], names: list[str]) -> pd.DataFrame:
    """Return effective rows, mean weights and largest weights, one line per estimator."""
    lines = []
    for name in names:
        answer = answers[name]
        steps = ", ".join(f"{v:.3f}" for v in answer.normalizers)
        total = answer.estimates.get("total")
        known = total is not None and total.influence is not None
        ten = share_of_heaviest(total.influence, total.cluster) if known else float("nan")  # type: ignore[union-attr, arg-type]
        lines.append((name, answer.ess, ten, answer.normalizer, steps, answer.largest_weight, answer.clipped))
    return pd.DataFrame(lines, columns=WEIGHT_COLUMNS)


def with_caveats(
    answers: dict[str, Answer], choices: list[Choice], support: Support, negligible: float
) -> dict[str, Answer]:
    """Add a caveat to imputed estimates: the share of runs that depends on the imputation model alone."""
    out = dict(answers)
    for choice in choices:
        if choice.method.imputes and support.unsupported > negligible:
            share = f"{100 * support.unsupported:.2g} % of the policy's runs"
            caveat = f"{share} depend on the imputation model alone: no similar row has the sets that they want"
            out[choice.name] = replace(out[choice.name], caveat=caveat)
    return out


def with_heavy_estimators(support: Support, choices: list[Choice], plan: Plan) -> Support:
    """Add the estimators that depend on a few rows to the support."""
    lines, rows = support.estimators.to_dict("records"), int(support.views["rows_usable"].iloc[0])
    unbiased = {c.name for c in choices if not c.method.biased}
    heavy = [
        line["estimator"]
        for line in lines
        if line["estimator"] in unbiased
        and few_rows_dominate(plan.thresholds, len(plan.data), rows, line["ess"], line["ten_heaviest"])
    ]
    return replace(support, heavy=(*support.heavy, dominated_words(support.estimators, heavy))) if heavy else support


def levels_note(plan: Plan) -> tuple[str, ...]:
    """Return a note on the rows that lack the column that defines the subgroups."""
    if plan.levels is None or plan.levels.n_missing == 0:
        return ()
    count, name, level = plan.levels.n_missing, plan.levels.name, plan.levels.names[-1]
    return (f"{count} of {len(plan.data)} rows have no {name!r}; they form the subgroup {level!r}.",)


def repeats_note(plan: Plan) -> tuple[str, ...]:
    """Return a note on the number of repeats."""
    if not plan.repeats:
        return ()
    return (f"Estimates are means over {1 + len(plan.repeats)} repeats with other folds and donors.",)


def warn_of_time(plan: Plan, n_policies: int, seconds: float) -> None:
    """Warn if the rest may take longer than five minutes, judged by the ``seconds`` that it took to walk the recorded rows.

    Only walks of rows are counted: policy and classifier take most of the time in long runs.
    """
    rows = steps_of(plan) - plan.n_replicates
    expected = seconds * (rows / len(plan.data) - 1)
    slow = [c.name for c in plan.choices if c.method.imputes or c.method.composed]
    if expected < _LONG or not slow:
        return
    others = [c.name for c in plan.choices if c.name not in slow]
    way = f"; estimators={others} leaves them out" if others else ""
    policies = "The policy runs" if n_policies == 1 else "The policies run"
    warn(
        f"The rest may take up to {expected / 60:,.0f} minutes: walking the {len(plan.data):,} rows took {seconds:,.0f} seconds. "
        f"{policies} also on completed rows for {' and '.join(slow)}{way}. n_jobs=2 or a faster classifier helps too.",
        LongRunWarning,
    )


def labels_note(plan: Plan) -> tuple[str, ...]:
    """Return a note on missing labels."""
    data = plan.data
    if data.original is None:
        return ()
    label, count = data.original.problem.label, int((~data.labelled).sum())
    return (
        f"{count} of {len(data)} rows have no {label!r}. The assumption covers its recording, too. Action values do not use "
        "the label.",
    )


def weights_note(plan: Plan) -> tuple[str, ...]:
    """Return a note on the weights of the rows."""
    data = plan.data
    if data.weight is None:
        return ()
    worth = effective_size(data.weight, data.cluster)
    known = " Shares of the labels are known." if data.label_shares is not None else ""
    return (f"Rows have weights: {len(data)} rows are worth {worth:.0f} rows with equal weights for a mean.{known}",)


def with_weightless_models(answers: dict[str, Answer], choices: list[Choice], plan: Plan) -> dict[str, Answer]:
    """Add a caveat to estimates that use a model of the user that takes no weights, if rows have weights."""
    if plan.data.weight is None:
        return answers
    out = dict(answers)
    for choice in choices:
        spec, values = plan.propensities[choice.propensity], plan.recipe.values
        models = [spec.estimator] if choice.method.weighs and isinstance(spec, LearnedPropensity) else []
        models += [values.regressor.estimator] if choice.method.valued and isinstance(values, LearnedValues) else []
        names = [
            type(m).__name__ for m in models if m is not None and (isinstance(m, PaperNetwork) or not takes_weights(m))
        ]
        texts = [
            f"{name} takes no weights: it learned from rows repeated as often as their weights say" for name in names
        ]
        if choice.method.imputes and plan.imputations and isinstance(plan.imputations.imputer, SklearnImputer):
            texts.append("the imputer takes no weights: it imputes from the rows as if they had equal weights")
        if texts:
            answer = out[choice.name]
            out[choice.name] = replace(answer, caveat="; ".join(t for t in (answer.caveat, *texts) if t))
    return out


def gap_of_nothing(plan: Plan, fitted: Fitted, choices: list[Choice]) -> tuple[str, ...]:
    """Compare two estimates of the cost of acquiring nothing: with the weights of the graph, and as a plain mean."""
    hybrid = [c.key for c in choices if c.key is not None and c.method.hybrid]
    if not hybrid or not plan.data.always_recorded[plan.data.problem.free].all():
        return ()
    from ..agents.builtin import AcquireNone

    view = fitted.views[hybrid[0]]
    if view.refusal or view.unsupported or not view.adjust.any():
        return ()
    (nothing,) = walk_policies(plan, {"nothing": on_records(AcquireNone(), plan.data)}).values()
    alone = replace(fitted, tables=nothing.tables, table=None, values={}, valued=())
    weighted = inverse_probability(alone.evidence(hybrid[0])).answer()
    words, doubtful = gap_between(weighted, alone)
    if doubtful:
        warn(f"{words[0]} The records contradict the graph, or the propensity is wrong.", AssumptionWarning)
    return words


def warn_of_doubts(
    answers: dict[str, Answer], choices: list[Choice], fitted: Fitted, propensities: Propensities, support: Support
) -> None:
    """Warn of poor support, clipped propensities, mean weights far from 1, fallbacks and failed fits."""
    judged = [choice.name for choice in choices if not choice.method.biased]
    for text in support.warnings if judged else ():
        warn(f"{text} See result.support.", SupportWarning)
    for name in judged:
        answer = answers[name]
        if answer.clipped:
            warn(
                f"{name}: {answer.clipped} learned propensities fell below 'min_propensity' and were raised to it. "
                "This biases the estimate towards rows that are recorded often. See result.support.",
                ClippedWeightsWarning,
            )
        off = abs(answer.normalizer - 1)
        if off > _FAR_OFF or (off > _OFF and off > 3 * answer.normalizer_error):
            warn(normalizer_words(name, answer.normalizer, answer.normalizer_error), NormalizerWarning)
    if fitted.fallbacks:
        warn(
            f"{fitted.fallbacks} action values could not be learned from rows with the same set and action, because "
            "the other folds have none. They come from a model with fewer groups, or else from the cost of stopping. "
            "A few such states do no harm. Compare drl-semi with ipw-semi, which needs no action values. If they differ, use "
            "fewer folds (n_folds=2), merge rare groups, or evaluate a policy that wants fewer groups. The rare sets are in "
            "support.sets.",
            ValueFallbackWarning,
        )
    if not propensities.converged:
        warn(
            "A logistic propensity did not converge, probably because a group is always (or never) recorded in some "
            "kind of rows. Check result.support for large weights.",
            PropensityFitWarning,
        )


def warn_of_classifier(answers: dict[str, Answer], choices: list[Choice], fitted: Fitted, plan: Plan) -> None:
    """Warn if the errors of the classifier cost more than the best constant answer."""
    if plan.data.original is not None:  # the cost of a constant answer needs all labels
        return
    labels = label_amounts(plan.data, fitted.row_weight)
    found = dearer_than_constant(answers, choices, labels, plan.recipe.tariff)
    if found is not None:
        warn(
            f"The errors of the classifier {name_of(plan.classifier)} cost {found.wrong.value:.4g} per run, but always "
            f"predicting {str(found.label)!r} would cost {found.constant.value:.4g}. If errors have different costs, use a "
            "classifier that predicts the label of least expected cost, such as afape.ImputedClassifier(decide='cost').",
            UselessClassifierWarning,
        )


def warn_of_weights(support: Support, choices: list[Choice], plan: Plan) -> None:
    """Warn if weights are concentrated on few rows, or do not balance the groups that are always recorded."""
    if not any(c.method.weighs and not c.method.biased for c in choices):
        return
    if support.heavy:
        warn(f"{' '.join(support.heavy)} See result.support.", HeavyWeightsWarning)
    worst = support.balance["after"].abs().max() if len(support.balance) else 0.0
    if worst > plan.thresholds.difference and (text := balance_words(support.balance, plan.thresholds.difference)):
        warn(text, BalanceWarning)


def plain_mean(fitted: Fitted) -> Estimate:
    r"""Estimate the cost of runs that stop at the start, from all rows: :math:`\frac1n \sum_i C_{S_0}(x_i, y_i)`."""
    cost, weight = np.zeros(len(fitted.data)), fitted.row_weight
    for table in fitted.tables:
        start = table.depth == 0
        cost[table.row[start]] = table.cost[start]
    value = float(weight @ cost / weight.sum())
    influence = weight * (cost - value) * (len(weight) / weight.sum())
    return Estimate(value, influence, fitted.data.cluster, fitted.data.identity)


def gap_between(weighted: Answer, fitted: Fitted) -> tuple[tuple[str, ...], bool]:
    """Describe the difference in words; returns these, and True if the difference is significant."""
    if weighted.reason or fitted.data.original is not None:  # a plain mean needs all labels
        return (), False
    plain = plain_mean(fitted)
    gap = weighted.estimates["total"] - plain
    if not gap.std_error > 0:
        return (), False
    p_value = float(2 * stdtr(gap.degrees_of_freedom, -abs(gap.value) / gap.std_error))
    words = (
        f"Acquiring nothing costs {plain.value:.4g} as the mean of all rows, which needs no graph, and "
        f"{plain.value + gap.value:.4g} with the weights of the graph: a difference of {gap.value:.2g}, standard error "
        f"{gap.std_error:.2g}, p = {p_value:.2g}."
    )
    return (words,), p_value < _DOUBTED
