"""Positivity diagnostics of one policy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from .._arrays import Bools, any_of, cluster_sums, effective_size, share_of_heaviest
from .._copies import HandsOutCopies
from ..data.retrospective import Retrospective
from ..files.writing import plain_records
from ..propensity.unsupported import SupportMap
from ..propensity.weights import View
from ..walk.table import WalkTable
from .balance import balance_table
from .search import MOST_SETS, Findings, SupportSearch
from .sums import SetSums, WalkSums, sums_over_walk
from .tables import group_table, heaviest_table, pair_table, set_table, undecided_table, view_table, violation_table
from .thresholds import SupportThresholds, few_rows_dominate
from .wording import advice_on, findings_on, heavy_words, thin_words, undecided_words

__all__ = ["WEIGHT_COLUMNS", "Support", "support_of"]

WEIGHT_COLUMNS = ["estimator", "ess", "ten_heaviest", "normalizer", "normalizers", "largest_weight", "clipped"]


@dataclass(frozen=True, eq=False)
class Support(HandsOutCopies):
    """Positivity diagnostics of one policy.

    Attributes
    ----------
    sets : DataFrame
        One line per set of groups that the policy wants: estimated probability that a run wants it (``wanted``), rows that
        have it recorded, rows that have it recorded and want it (``rows_wanting``), smallest propensity where it is
        supported, largest weight, effective sample size (``ess``), and share of the ten heaviest rows in the squared
        weights. The smallest propensity is over the rows that have the set and a sample of the rows that want it and do
        not have it.
    unsupported : float
        Estimated probability that a run wants an unsupported set: one that is recorded in no row, or in no row like
        this one. If it is above 0, no weighting is right.
    estimators : DataFrame
        Weights of each weighted estimator: effective sample size, share of the ten heaviest rows in the variance of the
        total cost (in the squared influence values), mean final weight (should be near 1), mean weights before each
        decision, largest weight, and number of clipped propensities.
    n_rows, sampled : int
        Number of rows, and how many of them were sampled instead of enumerated.
    groups : DataFrame
        One line per group: probability that the policy acquires it, and the worst values of the sets that contain it.
    pairs : DataFrame
        Pairs of groups that are never recorded together. ``both_wanted`` is True if the policy wants both.
    views : DataFrame
        One line per view: if positivity holds for this policy, share of its runs that is unsupported, rows that can be
        used, and share of the runs that these rows can follow to the end.
    violations : DataFrame
        Unsupported sets, the rows concerned, and the share of the policy's runs that meet them.
    heaviest : DataFrame
        The ten rows (positions in the data) and sets of largest weight, and their shares in the squared weights.
    balance : DataFrame
        For each of the 12 most wanted sets, and each column that is always recorded (label included): difference
        between the rows that have the set and all rows where it is supported, in standard deviations, before and after
        weighting. ``p_value`` tests the difference after weighting; the learning of logistic propensities counts. Sets that
        few runs want (``thresholds.wanted``) and sets that every row has are left out. At most 10,000 rows are used. The
        largest difference comes first.
    undecided : DataFrame
        Sets that are hardly ever recorded in a region but more often beside it, where the rows do not decide if they can be
        recorded: the rows are fewer than ``rows_needed``, or recording falls smoothly towards the region. Estimates treat
        these regions as supported.
    unsearched : int
        Number of wanted sets that were not searched for regions. At most 512 sets are searched, small and large ones first;
        of the others, only those that no row has are found.
    heavy : tuple of str
        Sentences about the rows that dominate the estimates; empty if none do.
    warnings : tuple of str
        Sentences about what is below a threshold; empty if nothing is.
    advice : tuple of str
        What the user can do.
    """

    sets: pd.DataFrame
    unsupported: float
    estimators: pd.DataFrame
    n_rows: int
    sampled: int
    groups: pd.DataFrame = field(default_factory=pd.DataFrame)
    pairs: pd.DataFrame = field(default_factory=pd.DataFrame)
    views: pd.DataFrame = field(default_factory=pd.DataFrame)
    violations: pd.DataFrame = field(default_factory=pd.DataFrame)
    warnings: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    heaviest: pd.DataFrame = field(default_factory=pd.DataFrame)
    balance: pd.DataFrame = field(default_factory=pd.DataFrame)
    undecided: pd.DataFrame = field(default_factory=pd.DataFrame)
    heavy: tuple[str, ...] = ()
    unsearched: int = 0

    @property
    def holds(self) -> bool:
        """True if positivity holds for this policy in the semi-offline view, as far as the records show.

        False as well if a few rows dominate the estimates, or if rows are too few to decide: see ``heavy`` and ``undecided``.
        """
        broken = self.unsupported > 0 or len(self.violations) > 0 or not self.views["holds"].iloc[0]
        return not broken and not self.heavy and len(self.undecided) == 0

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers and text, ready for JSON."""
        frames = ("sets", "estimators", "groups", "pairs", "views", "violations", "heaviest", "balance", "undecided")
        return {
            "holds": self.holds,
            "unsupported": self.unsupported,
            "n_rows": self.n_rows,
            "sampled_rows": self.sampled,
            "unsearched_sets": self.unsearched,
            **{name: plain_records(getattr(self, name)) for name in frames},
            "heavy": list(self.heavy),
            "warnings": list(self.warnings),
            "advice": list(self.advice),
        }

    def plot_balance(self, ax: Any = None, most: int = 30) -> Any:
        """Draw a love plot of the ``most`` largest differences before and after weighting; return the matplotlib axes."""
        from ..plots.reliance import love_plot

        return love_plot(self.balance, most, ax)

    @property
    def words(self) -> tuple[str, ...]:
        """Summary in a few lines: findings begin with "!", advice with ">"."""
        walk = "exact walk" if self.sampled == 0 else f"{self.sampled} of {self.n_rows} rows sampled"
        head = f"Support: {len(self.sets)} sets wanted, {100 * self.unsupported:.2g} % of runs unsupported, {walk}"
        if self.unsearched:
            head += f"; only {MOST_SETS} sets were searched for regions without support, {self.unsearched} were not"
        return (head, *(f"! {text}" for text in (*self.warnings, *self.heavy)), *(f"> {text}" for text in self.advice))

    def _repr_html_(self) -> str:
        words = "".join(f"<p>{escape(text)}</p>" for text in self.words)
        frames = (self.views, self.groups, self.sets.head(12))
        return words + "".join(f.round(4).to_html(index=False, border=0) for f in frames if len(f))

    def __repr__(self) -> str:
        sets = self.sets.head(12)
        frames = (self.views, self.violations, self.undecided, self.groups, sets, self.pairs, self.estimators)
        shown = [frame.to_string(index=False, float_format="{:.4g}".format) for frame in frames if len(frame)]
        return "\n".join([*self.words, *shown])


def support_of(
    data: Retrospective,
    tables: Iterable[WalkTable],
    search: SupportSearch,
    semi: View,
    complete: View | None,
    findings: Findings,
) -> Support:
    """Support of a policy with these tables of its walk.

    ``semi`` is its semi-offline or hybrid view; ``complete`` its missing-data view, or None if the probability of a
    complete row is not identified; ``findings`` are those of the search of the semi-offline or hybrid view.
    """
    limits, found, columns = search.thresholds, semi.unsupported, search.columns
    sums = sums_over_walk(data, tables, semi, limits.propensity)
    sets, of_sets = set_table(data, sums, semi.adjust)
    never = float(sets["wanted"][sets["rows_recorded"] == 0].sum())
    unsupported = min(max(sums.lost / float(data.row_weight.sum()), never), 1.0)
    views = view_table(data, sums, semi, complete, unsupported)
    unclear = undecided_table(data, findings.undecided, limits.healthy, columns)
    refused = (f"No estimate: {semi.refusal}.",) if semi.refusal else ()
    sentences = findings_on(data, sets, found, unsupported, columns)
    heaviest = heaviest_table(data, sums)
    return Support(
        sets=sets,
        unsupported=unsupported,
        estimators=pd.DataFrame(columns=WEIGHT_COLUMNS),
        n_rows=len(data),
        sampled=sums.sampled,
        groups=group_table(data, sums, sets, of_sets.sets),
        pairs=pair_table(data, of_sets.sets),
        views=views,
        violations=violation_table(data, found, columns),
        warnings=(*refused, *sentences, *_thin_sets(sets, of_sets, found, limits), *undecided_words(unclear)),
        advice=advice_on(data, found, views, columns, semi.adjust),
        heaviest=heaviest,
        balance=balance_table(data, semi, _sets_to_balance(data, sets, of_sets.sets | semi.adjust, limits.wanted)),
        undecided=unclear,
        unsearched=findings.unsearched,
        heavy=_heavy_rows(data, sums, heaviest, limits),
    )


def _thin_sets(sets: pd.DataFrame, sums: SetSums, found: SupportMap, limits: SupportThresholds) -> list[str]:
    """Sentences about sets that enough runs want and that too few rows, or a few heavy ones, represent."""
    out = []
    heaviest = sums.top.max(axis=1) / np.maximum(sums.amount, 1e-300)
    small = sums.small / np.maximum(sums.asked, 1)
    much = np.flatnonzero(sets["wanted"] >= limits.wanted)  # of very many sets, most are wanted by few runs
    shares = zip(sets.iloc[much].to_dict("records"), heaviest[much], small[much], strict=True)
    for line, heavy, low in shares:
        name, wanted, rows = line["set"], line["wanted"], line["rows_wanting"]
        reported = line["rows_recorded"] == 0 or (rows == 0 and bool(found))
        if not reported and not name.startswith("("):
            out.append(thin_words(name, wanted, rows, line["ess"], float(heavy), float(low), limits))
    return [text for text in out if text]


def _sets_to_balance(data: Retrospective, sets: pd.DataFrame, required: Bools, least: float) -> dict[str, Bools]:
    """Return the masks (G,), by name, of the sets whose balance may be shown; the most wanted first.

    At least the share ``least`` of the runs wants such a set, and two or more rows have it, but not every row.
    ``required`` (u, G) has one line per line of ``sets`` and includes the groups to adjust for.
    """
    gaps = any_of(required & ~data.always_recorded)
    enough = (sets["wanted"] >= least) & (sets["rows_recorded"] > 1) & gaps
    return {sets["set"][u]: required[u] for u in np.flatnonzero(enough)}


def _heavy_rows(
    data: Retrospective, sums: WalkSums, heaviest: pd.DataFrame, limits: SupportThresholds
) -> tuple[str, ...]:
    """Sentence about the rows that dominate the estimates, if any do."""
    rows = int((cluster_sums(sums.final, data.cluster) > 0).sum())
    if rows == 0:
        return ()
    ess, ten = effective_size(sums.final, data.cluster), share_of_heaviest(sums.final, data.cluster)
    if not few_rows_dominate(limits, len(data), rows, ess, ten):
        return ()
    label = None if data.original is None else str(data.original.problem.label)
    return (heavy_words(rows, len(data), ess, ten, sums.largest, heaviest, label),)
