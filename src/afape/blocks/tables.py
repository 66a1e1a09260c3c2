"""Tables and sentences of several blocks, joined to one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import chdtrc, ndtr

from .._arrays import Floats
from ..support.implications import holm

__all__ = ["frame_of", "gathered", "joined_balance", "joined_paths", "joined_support", "joined_tests"]

Rule = Callable[[Floats, Floats], float]  # values of the blocks that have the line, and their shares of the rows


def _sum(values: Floats, shares: Floats) -> float:
    return float(np.nansum(values))  # small numbers of rows may be hidden


def _share(values: Floats, shares: Floats) -> float:
    """Mean over all blocks: 0 in those without the line."""
    return float(shares @ values)


def _mean(values: Floats, shares: Floats) -> float:
    """Mean over the blocks that have a number."""
    known = ~np.isnan(values)
    return float(shares[known] @ values[known] / shares[known].sum()) if known.any() else float("nan")


def _least(values: Floats, shares: Floats) -> float:
    return float(np.nanmin(values)) if not np.isnan(values).all() else float("nan")


def _most(values: Floats, shares: Floats) -> float:
    return float(np.nanmax(values)) if not np.isnan(values).all() else float("nan")


def _error(values: Floats, shares: Floats) -> float:
    """Standard error of a mean over independent blocks."""
    return float(np.sqrt(shares**2 @ values**2) / shares.sum())


_RULES: dict[str, Rule] = {
    **dict.fromkeys(("wanted", "unsupported", "share", "stops"), _share),
    **dict.fromkeys(("rows_recorded", "rows_wanting", "rows", "rows_usable", "ess", "clipped", "statistic", "degrees"), _sum),
    **dict.fromkeys(("share_recorded", "ten_heaviest", "trajectories_usable", "before", "after", "normalizer", "gain",
                     "calibration_slope", "log_odds", "misclassification"), _mean),
    **dict.fromkeys(("smallest_propensity",), _least),
    **dict.fromkeys(("largest_weight", "rows_needed", "calibration_gap"), _most),
    "std_error": _error,
}  # fmt: skip
_KEYS = {
    "sets": ["set"],
    "groups": ["group"],
    "pairs": ["group", "and"],
    "views": ["view"],
    "violations": ["set", "where"],
    "balance": ["set", "column"],
    "undecided": ["set", "where"],
}
_WHOLE = ("rows_recorded", "rows_wanting", "rows", "rows_usable", "rows_needed", "clipped")  # numbers of rows


def frame_of(table: Mapping[str, Any]) -> pd.DataFrame:
    """Return a table that was written as lists."""
    return pd.DataFrame(table["lines"], columns=table["columns"]).infer_objects()


def _joined(tables: Sequence[pd.DataFrame], shares: Floats, keys: list[str]) -> pd.DataFrame:
    """Join lines with equal keys by the rule of each column; other columns keep their first entry."""
    columns = list(tables[0].columns) if tables else []
    stacked = pd.concat([t.assign(_share=s) for t, s in zip(tables, shares, strict=True) if len(t)] or [pd.DataFrame()])
    if not len(stacked):
        return pd.DataFrame(columns=columns)
    lines = []
    for _, mine in stacked.groupby(keys, sort=False, dropna=False):
        line = {}
        for name in columns:
            rule = _RULES.get(name)
            first = mine[name].iloc[0]
            line[name] = first if rule is None else rule(mine[name].to_numpy(dtype=float), mine["_share"].to_numpy())
        lines.append(line)
    found = pd.DataFrame(lines, columns=columns)
    return found.astype({name: np.int64 for name in _WHOLE if name in found and found[name].notna().all()})


def joined_support(name: str, tables: Sequence[pd.DataFrame], shares: Floats) -> pd.DataFrame:
    """Join a table of `Support`; in the sums of rows, blocks that do not list a set count as having none."""
    found = _joined(tables, shares, _KEYS[name])
    if not len(found):
        return found
    if name == "sets":
        return found.sort_values(["wanted", "set"], ascending=[False, True], ignore_index=True)
    if name == "pairs":  # never recorded together in any block
        everywhere = [
            sum(_has(t, line, _KEYS[name]) for t in tables) == len(tables) for line in found.to_dict("records")
        ]
        found["both_wanted"] = [
            any(t.loc[_lines_with(t, line, _KEYS[name]), "both_wanted"].any() for t in tables)
            for line in found.to_dict("records")
        ]
        return found[everywhere].reset_index(drop=True)
    if name == "views":
        found["holds"] = [all(t.loc[t["view"] == view, "holds"].all() for t in tables) for view in found["view"]]
    order = {"violations": "unsupported", "undecided": "wanted"}.get(name)
    return found if order is None else found.sort_values(order, ascending=False, ignore_index=True)


def _lines_with(table: pd.DataFrame, line: Mapping[Any, Any], keys: list[str]) -> pd.Series[bool]:
    return (table[keys] == [line[k] for k in keys]).all(axis=1)


def _has(table: pd.DataFrame, line: Mapping[Any, Any], keys: list[str]) -> bool:
    return bool(len(table) and _lines_with(table, line, keys).any())


def joined_balance(tables: Sequence[pd.DataFrame], shares: Floats) -> pd.DataFrame:
    """Join differences between weighted rows and all rows; the mean of independent differences is nearly normal."""
    found = _joined(tables, shares, _KEYS["balance"])
    if not len(found):
        return found
    error = found["std_error"].to_numpy(dtype=float)
    found["p_value"] = 2 * ndtr(-found["after"].abs().to_numpy(dtype=float) / np.maximum(error, 1e-300))
    order = np.argsort(-found["after"].abs().to_numpy(dtype=float), kind="stable")
    return found.iloc[order].reset_index(drop=True)


def joined_paths(sets: Sequence[pd.DataFrame], steps: Sequence[pd.DataFrame], shares: Floats) -> list[pd.DataFrame]:
    """Join shares of runs; the mean misclassification cost of a set is that of the runs that stop there."""
    weighted = [t.assign(misclassification=t["misclassification"] * t["stops"]) for t in sets]
    found = _joined(weighted, shares, ["set"])
    stops = _joined([t.assign(stops=t["stops"].where(t["misclassification"].notna())) for t in sets], shares, ["set"])
    if len(found):
        cost = sum(s * t.set_index("set")["misclassification"].reindex(found["set"]).fillna(0.0).to_numpy()
                   for t, s in zip(weighted, shares, strict=True))  # fmt: skip
        known = sum(s * t.set_index("set")["stops"].reindex(found["set"]).fillna(0.0).to_numpy()
                    for t, s in zip(sets, shares, strict=True))  # fmt: skip
        found["stops"] = np.where(stops["stops"].isna() & (np.asarray(known) == 0), np.nan, known)
        with np.errstate(invalid="ignore", divide="ignore"):
            found["misclassification"] = np.asarray(cost) / np.asarray(known)
        found = found.sort_values(["groups", "share"], ascending=[True, False], kind="stable", ignore_index=True)
    return [found, _joined(steps, shares, ["set", "group", "to"])]


def joined_forms(tables: Sequence[pd.DataFrame], shares: Floats) -> pd.DataFrame:
    """Join the forms of learned propensities: the form that most blocks have."""
    found = _joined(tables, shares, ["group"])
    if len(found):
        forms = pd.concat(tables).groupby("group", sort=False)["form"].agg(lambda f: f.mode().iloc[0])
        found["form"] = forms.reindex(found["group"]).to_numpy()
    return found


def joined_tests(tables: Sequence[pd.DataFrame], shares: Floats) -> pd.DataFrame:
    """Join tests of implications: statistics and degrees of freedom of independent blocks add up."""
    tables = [t.assign(log_odds=np.log(t["odds_ratio"].astype(float))) for t in tables]
    found = _joined(
        [t.fillna({"statistic": 0.0, "degrees": 0.0}) for t in tables], shares, ["recording", "of", "given"]
    )
    if not len(found):
        return found.drop(columns="log_odds", errors="ignore")
    found["odds_ratio"] = np.exp(found.pop("log_odds").to_numpy(dtype=float))
    tested = found["degrees"].to_numpy(dtype=float) > 0
    statistic, degrees = found["statistic"].to_numpy(dtype=float), found["degrees"].to_numpy(dtype=float)
    found["p_value"] = np.where(tested, chdtrc(np.maximum(degrees, 1.0), statistic), np.nan)
    for name in ("statistic", "degrees"):
        found[name] = found[name].where(tested)
    found["p_adjusted"] = holm(found["p_value"].to_numpy(dtype=float))
    found["words"] = [_words(line, tables) for line in found.to_dict("records")]
    return found.sort_values(["p_value", "recording", "of"], ignore_index=True)


def _words(line: Mapping[Any, Any], tables: Sequence[pd.DataFrame]) -> str:
    """Return the sentence of the block with the clearest test, with the numbers of all blocks."""
    keys = ["recording", "of", "given"]
    each = pd.concat([t[_lines_with(t, line, keys)] for t in tables if len(t)])
    each = each.sort_values("p_value", na_position="last")
    text, p_value = str(each["words"].iloc[0]), line["p_value"]
    if np.isnan(p_value):
        return text
    verb = "predicts" if p_value < 0.05 else "does not predict"
    p = f"p = {p_value:.1g}" if p_value >= 1e-12 else "p < 1e-12"
    text = re.sub(r" (predicts|does not predict) ", f" {verb} ", text, count=1)
    return re.sub(
        r"odds ratio \S+( per standard deviation)?, p .*$", rf"odds ratio {line['odds_ratio']:.2g}\1, {p}", text
    )


def gathered(
    texts: Sequence[Sequence[str]], what: str = "block", names: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Return the sentences of all blocks, each once; numbers may differ between blocks, and the first block's are shown."""
    first: dict[str, tuple[str, list[int]]] = {}
    for k, mine in enumerate(texts):
        for text in mine:
            found = first.setdefault(re.sub(r"[-+]?\d[\d.,e+-]*", "#", text), (text, []))
            found[1].append(k)
    out = []
    for text, where in first.values():
        if len(set(where)) == len(texts) and all(text in mine for mine in texts):
            out.append(text)
        elif len(set(where)) == len(texts):
            out.append(f"{text} (numbers of {what} {_name(where[0], names)}; the others are similar)")
        else:
            which = f"{what} {_name(where[0], names)}"
            more = f" and {len(set(where)) - 1} of the {len(texts) - 1} others" if len(set(where)) > 1 else ""
            out.append(f"In {which}{more}: {text}")
    return tuple(out)


def _name(k: int, names: Sequence[str] | None) -> str:
    return str(k) if names is None else repr(names[k])
