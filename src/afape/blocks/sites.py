"""combine(): one answer from the summaries of several sites that exchange no rows, and how much the sites differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import chdtrc

from .._arguments import as_float, check_choice, check_estimator, check_mapping, is_number, shown
from .._arrays import Floats
from .._copies import HandsOutCopies
from ..estimators.estimate import Bounds, Estimate
from ..files.writing import plain_records
from ..results.comparison import Comparison
from ..results.evaluation import Evaluation
from ..results.twins import own_name
from .combining import Blocks, combined
from .summary import Summary, assumption_from_json

__all__ = ["Sites", "combine"]

_LEVEL = 0.05
_SAME = {
    "confidence": "confidence",
    "missingness": "assumption",
    "classifier": "classifier",
}  # what all sites must agree on, in words


def combine(sites: Mapping[str, Any], cases: Mapping[str, float] | None = None) -> Sites:
    r"""Combine the results of several sites, such as hospitals, that do not share rows.

    The pooled estimate is the mean over sites, weighted by their cases, as if all rows were in one table whose models are
    learned within sites:

    .. math:: \hat J = \sum_k s_k \hat J_k, \qquad \widehat{se}^2 = \sum_k s_k^2 \, \widehat{se}_k^2, \qquad
       Q = \sum_k \frac{(\hat J_k - \bar J)^2}{\widehat{se}_k^2}

    Cochran's Q has a chi-squared distribution with K - 1 degrees of freedom if all sites have the same cost;
    :math:`\bar J` is the mean with weights :math:`1 / \widehat{se}_k^2`.

    Parameters
    ----------
    sites : mapping from name to Summary, Comparison, Evaluation or path
        At least two sites, with the same problem, assumption, policies and classifier. A path is a file that `Summary.save`
        wrote.
    cases : mapping from name to number, optional
        How many cases each site stands for. Default: its rows, or the sum of their weights.

    Returns
    -------
    Sites
    """
    named = check_mapping("sites", sites, "from names of sites to their summaries or results")
    if len(named) < 2:
        raise ValueError(f"'sites' must have at least two sites, but has {list(named)}.")
    summaries = {name: _summary(name, thing) for name, thing in named.items()}
    _check_alike(summaries)
    return Sites(summaries, _cases(summaries, cases))


def _summary(name: str, thing: Any) -> Summary:
    if isinstance(thing, Summary):
        found = thing
    elif isinstance(thing, Comparison | Evaluation):
        found = Summary.of(thing, min_cell=0)
    elif isinstance(thing, str | Path):
        found = Summary.load(thing)
    else:
        raise TypeError(
            f"'sites' must have summaries, results or paths, but {name!r} is {shown(thing)}. Make a summary with "
            "afape.Summary.of(result)."
        )
    if "policies" not in found.about:
        raise ValueError(f"'sites' must have summaries of evaluations, but that of {name!r} is not one.")
    return found


def _check_alike(summaries: Mapping[str, Summary]) -> None:
    (first, one), *others = summaries.items()
    for name, other in others:
        for key, words in _SAME.items():
            if one.about[key] != other.about[key]:
                raise ValueError(
                    f"'sites' must have one {words}, but {first!r} has {one.about[key]} and {name!r} has {other.about[key]}."
                )
        for key in ("problem", "classes"):
            if one.about["records"][key] != other.about["records"][key]:
                raise ValueError(
                    f"'sites' must have one problem, but {first!r} and {name!r} differ: {one.about['records'][key]} and "
                    f"{other.about['records'][key]}. List all labels in 'classes' of the Problem."
                )
        if [*one.about["policies"]] != [*other.about["policies"]]:
            raise ValueError(
                f"'sites' must have the same policies, but {first!r} has {[*one.about['policies']]} and {name!r} has "
                f"{[*other.about['policies']]}."
            )


def _cases(summaries: Mapping[str, Summary], cases: Mapping[str, float] | None) -> Floats:
    if cases is None:
        return np.array([s.about["cases"] for s in summaries.values()])
    named = check_mapping("cases", cases, "from names of sites to their cases")
    if set(named) != set(summaries):
        raise ValueError(f"'cases' must name every site once, but has {list(named)} for {list(summaries)}.")
    found = np.array([as_float(named[name]) if is_number(named[name]) else np.nan for name in summaries])
    if not (found > 0).all() or not np.isfinite(found).all():
        raise ValueError(f"'cases' must be positive numbers, but is {shown(cases)}.")
    return found


@dataclass(frozen=True, eq=False)
class Sites(HandsOutCopies):
    """Results of several sites.

    Attributes
    ----------
    pooled : Comparison
        The comparison on the rows of all sites.
    each : dict
        The comparison of each site.
    table : DataFrame
        One line per policy, estimator, target and site: estimate, standard error and interval. The site "all" is the pooled
        estimate.
    """

    summaries: dict[str, Summary]
    cases: Floats

    @cached_property
    def pooled(self) -> Comparison:
        """The comparison on the rows of all sites."""
        listed = ", ".join(f"{name} ({len(s):,} rows)" for name, s in self.summaries.items())
        return self._combined(list(self.summaries), f"Estimates are means over {len(self.summaries)} sites: {listed}.")

    @cached_property
    def each(self) -> dict[str, Comparison]:
        """The comparison of each site."""
        return {name: self._combined([name], "") for name in self.summaries}

    def _combined(self, names: list[str], note: str) -> Comparison:
        summaries = [self.summaries[name] for name in names]
        cases = np.array([c for c, name in zip(self.cases, self.summaries, strict=True) if name in names])
        identity = "sites: " + ", ".join(s.identity for s in summaries)
        blocks = Blocks(summaries, cases, identity, "site", names, random=False)
        first = summaries[0].about
        return combined(blocks, assumption_from_json(first["assumption"]), first["seed"], [note] if note else [])

    @cached_property
    def table(self) -> pd.DataFrame:
        """One line per policy, estimator, target and site; the site "all" is the pooled estimate."""
        tables = [found.table.assign(site=name) for name, found in (*self.each.items(), ("all", self.pooled))]
        columns = ["policy", "estimator", "target", "site", "estimate", "std_error", "bound_lower", "bound_upper", "lower",
                   "upper", "ess", "note"]  # fmt: skip
        whole = pd.concat(tables, ignore_index=True)[columns]
        order = {
            key: k
            for k, key in enumerate(
                dict.fromkeys(zip(whole["policy"], whole["estimator"], whole["target"], strict=True))
            )
        }
        place = [order[key] for key in zip(whole["policy"], whole["estimator"], whole["target"], strict=True)]
        return whole.iloc[np.argsort(place, kind="stable")].reset_index(drop=True)

    def heterogeneity(self, estimator: str | None = None, target: str = "total") -> pd.DataFrame:
        """Test if the sites differ in the cost of each policy, and in the difference of each pair of policies.

        One line per policy, and per pair (``policy`` minus ``minus``): Cochran's ``Q``, its ``degrees`` of freedom and
        ``p_value``; ``i_squared``, the share of the variation between sites that errors do not explain; ``least`` and ``largest``
        estimate of a site. Sites with bounds are left out.

        Parameters
        ----------
        estimator : str, optional
            Default: that of the pooled comparison.
        target : str
            As in `Comparison.estimates`.
        """
        check_choice("target", target, next(iter(self.pooled.evaluations.values())).targets)
        name = self.pooled.best_estimator if estimator is None else check_estimator(estimator)
        self.pooled.estimates(name, target)  # raises the reason if there are none
        found = {site: self._estimates(site, name, target) for site in self.summaries}
        policies = list(self.pooled.evaluations)
        lines = []
        for policy in policies:
            lines.append((policy, "", [e[policy] for e in found.values() if policy in e]))
        for a, b in combinations(policies, 2):
            lines.append((a, b, [e[a] - e[b] for e in found.values() if a in e and b in e]))
        return pd.DataFrame([{"policy": a, "minus": b, **_cochran(estimates)} for a, b, estimates in lines])

    def _estimates(self, site: str, estimator: str, target: str) -> dict[str, Estimate]:
        """Estimates of one site, without bounds."""
        out = {}
        for policy, evaluation in self.each[site].evaluations.items():
            own = own_name(evaluation, estimator)
            if own in evaluation and not isinstance(evaluation[own][target], Bounds):
                out[policy] = evaluation[own][target]
        return out

    def to_dict(self) -> dict[str, Any]:
        """Return all tables as plain numbers and text, ready for JSON."""
        return {
            "sites": {name: len(s) for name, s in self.summaries.items()},
            "table": plain_records(self.table),
            "heterogeneity": plain_records(self.heterogeneity()),
            "pooled": self.pooled.to_dict(),
        }

    def to_html(self, path: str | Path, **content: Any) -> None:
        """Write the report of the pooled comparison, with a table of the sites; ``content`` as in `Comparison.to_html`."""
        from ..report.page import write_report  # report is a higher layer

        write_report(self, path, **content)

    def page(self) -> dict[str, Any]:
        """Return what a page says about the sites: estimates of the total cost, tests, and sentences about them."""
        estimator = self.pooled.best_estimator
        table = self.table[(self.table["estimator"] == estimator) & (self.table["target"] == "total")]
        tests = self.heterogeneity(estimator)
        clear = tests[tests["p_value"] < _LEVEL / max(len(tests), 1)]
        sentences = [
            f"The {'cost of' if not line['minus'] else 'difference between'} “{line['policy']}”"
            f"{'' if not line['minus'] else ' and “' + line['minus'] + '”'} differs between sites: from {line['least']:.4g} to "
            f"{line['largest']:.4g}, p = {line['p_value']:.1g}."
            for line in clear.to_dict("records")
        ]
        none = f"No cost and no difference differs between sites at level {_LEVEL:g} (Cochran's test, by {estimator})."
        return {
            "names": list(self.summaries),
            "rows": [len(s) for s in self.summaries.values()],
            "estimates": plain_records(table),
            "tests": plain_records(tests),
            "sentences": sentences or [none],
        }

    def __repr__(self) -> str:
        rows = ", ".join(f"{name} {len(s):,} rows" for name, s in self.summaries.items())
        return f"{len(self.summaries)} sites ({rows})\n{self.pooled!r}"


def _cochran(estimates: list[Estimate]) -> dict[str, float]:
    """Test that independent estimates have one expectation."""
    values, errors = np.array([e.value for e in estimates]), np.array([e._error[0] for e in estimates])
    known = np.isfinite(values) & np.isfinite(errors)
    values, errors = values[known], errors[known]
    out = {"sites": len(values), "least": np.nan, "largest": np.nan, "Q": np.nan, "degrees": np.nan, "p_value": np.nan,
           "i_squared": np.nan}  # fmt: skip
    if len(values) < 2:
        return out
    out |= {"least": float(values.min()), "largest": float(values.max()), "degrees": float(len(values) - 1)}
    if not (errors > 0).all():  # known by construction at some site: all agree, or they certainly differ
        alike = bool(np.ptp(values) <= 1e-9 * max(1.0, float(np.abs(values).max())))
        return out | (
            {"Q": 0.0, "p_value": 1.0, "i_squared": 0.0} if alike else {"Q": np.inf, "p_value": 0.0, "i_squared": 1.0}
        )
    weight = 1 / errors**2
    centre = float(weight @ values / weight.sum())
    q, degrees = float(weight @ (values - centre) ** 2), len(values) - 1
    return out | {
        "Q": q,
        "p_value": float(chdtrc(degrees, q)),
        "i_squared": max(0.0, (q - degrees) / q) if q > 0 else 0.0,
    }
