"""check_support() and check_missingness(): checks of a policy and of an assumption against the records."""

from __future__ import annotations

from typing import Any

from ._arguments import check_confidence
from .agents.policy import Policy
from .blocks.checking import missingness_of_scan, support_of_scan
from .blocks.scanning import Scan
from .data.retrospective import Retrospective
from .data.row_counts import RowCounts
from .missingness.assumptions import MAR, MCAR, MNAR
from .results.evaluation import Origin
from .run.fit import bind_propensities, views_of
from .run.options import Options
from .run.plan import Silent, make_plan, on_records
from .run.walk import walk_policies
from .support.implications import check_implications, implications
from .support.label_gaps import label_gaps
from .support.missingness_check import MissingnessCheck
from .support.suggestion import suggestion_from
from .support.support import Support, support_of
from .support.thresholds import SupportThresholds
from .walk.walker import WalkOptions
from .warnings import HeavyWeightsWarning, SupportWarning, warn

__all__ = ["check_missingness", "check_of", "check_support"]


def check_support(
    data: Retrospective | Scan,
    policy: Policy,
    *,
    missingness: MCAR | MAR | MNAR,
    propensity: Any = None,
    thresholds: SupportThresholds | None = None,
    n_folds: int | None = None,
    random_state: int | None = 0,
    n_jobs: int | None = None,
    walk: WalkOptions | None = None,
) -> Support:
    """Check if the records support a policy; `evaluate` runs this check too.

    An estimate uses recorded rows in place of runs of the policy. If no similar rows are recorded, no estimator can
    help. The check looks at the sets of groups that the policy wants. It searches, without a model, for regions in
    which a set is never or hardly ever recorded. A region is an interval of one column, a box of two or three columns,
    or all rows on one side of a line or between two parallel lines. Only columns that missingness depends on are used.
    With more than 512 sets, only the smallest and the largest are searched for regions.

    Parameters
    ----------
    data : Retrospective or Scan
        Records, in memory or in files (`afape.scan`).
    policy
        Anything with ``probabilities(values, acquired)``.
    missingness : MCAR, MAR or MNAR
        Assumption about why values are missing.
    propensity : optional
        As in `evaluate`, but not a list. With a `KnownPropensity`, a set is unsupported if its known probability is too
        small.
    thresholds : SupportThresholds, optional
        Which sets count as unsupported, when an estimate becomes bounds, and when to warn.
    n_folds, random_state, n_jobs, walk
        As in `evaluate`.

    Returns
    -------
    Support
        Its ``warnings`` are also issued as `SupportWarning`, and those in ``heavy`` as `HeavyWeightsWarning`.
    """
    if isinstance(propensity, list | tuple):
        raise TypeError("'propensity' must be one propensity here, not a list; call check_support once for each.")
    if isinstance(data, Scan):
        settings = {"missingness": missingness, "propensity": propensity, "thresholds": thresholds, "n_folds": n_folds}
        return support_of_scan(check_support, data, policy, random_state, settings | {"n_jobs": n_jobs, "walk": walk})
    options = Options(
        propensity=propensity,
        thresholds=thresholds,
        n_folds=n_folds,
        random_state=random_state,
        n_jobs=n_jobs,
        walk=walk,
    )
    plan = make_plan(data, Silent(), missingness, options)
    (walked,) = walk_policies(plan, {"policy": on_records(policy, plan.data)}).values()
    views = views_of(plan, bind_propensities(plan, [walked]), walked)
    support = support_of(plan.data, walked.tables, views.search, views.semi, views.complete, views.findings)
    for text in support.warnings:
        warn(text, SupportWarning)
    for text in support.heavy:
        warn(text, HeavyWeightsWarning)
    return support


def check_missingness(
    data: Retrospective | Scan, missingness: MCAR | MAR | MNAR, *, level: float = 0.05
) -> MissingnessCheck:
    r"""Test the implications of an assumption for the records; `evaluate` tests those about the label.

    Missing at random given X_o implies that :math:`R_a` is independent, given X_o, of Y and of all other columns that are
    always recorded, and of :math:`X_b` among rows that have b. A graph implies this for every pair that it separates
    in rows that have both recorded. Each implication is tested by a score test of a logistic regression with the
    column added (robust variance, by cluster if rows belong together). The given columns may act by curves and products
    of pairs.

    If labels are missing, ``labels`` of the result also says if the groups that every row has predict their recording. If so,
    labels are not missing completely at random, as ``missing_labels="drop"`` assumes.

    Parameters
    ----------
    data : Retrospective or Scan
        Records, in memory or in files (`afape.scan`). In blocks, the statistics of all blocks are added up.
    missingness : MCAR, MAR or MNAR
        Assumption about why values are missing.
    level : float
        Level of the tests, after adjustment for their number.

    Returns
    -------
    MissingnessCheck
        Tests, sentences about rejected implications, and advice. Records can contradict an assumption, but never prove
        it: they say nothing about values that were not recorded.
    """
    level = check_confidence(level, "level")
    if isinstance(data, Scan):
        return missingness_of_scan(check_missingness, data, missingness, level)[0]
    data = make_plan(data, Silent(), missingness, Options()).data  # raises an error if the arguments do not fit
    table = check_implications(data, implications(missingness.graph_on(data)))
    change = suggestion_from(missingness, data, table[table["p_adjusted"] < level])
    return MissingnessCheck(repr(missingness), table, level, change, label_gaps(data, level))


def check_of(origin: Origin, level: float = 0.05) -> MissingnessCheck:
    """Test the implications of the assumption of an evaluation, for its records; of blocks, the tests are known."""
    data, missingness = origin.data, origin.missingness
    if not isinstance(data, RowCounts):
        return check_missingness(data, missingness, level=level)
    table = origin.tested()
    change = suggestion_from(missingness, data, table[table["p_adjusted"] < level])
    return MissingnessCheck(repr(missingness), table, level, change)
