"""Facts: what an evaluation knows about the items of reporting guidelines, as sentences in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..estimators.catalogue import METHODS
from ..results.exports import in_markdown
from ..results.numbers import cost, number
from .sentences import STANDING_ASSUMPTIONS, percent

__all__ = ["facts_of"]

Content = dict[str, Any]  # what `summarize` returns


def facts_of(content: Content) -> dict[str, str]:
    """Return a text for every fact; an empty text if the evaluation does not know it."""
    return {name: make(content) for name, make in _FACTS.items()}


def _names(names: Iterable[Any]) -> str:
    """Return names as a list in a sentence."""
    listed = [f"“{in_markdown(str(name))}”" for name in names]
    return ", ".join(listed[:-1]) + (" and " if len(listed) > 1 else "") + listed[-1] if listed else ""


def _policies(content: Content) -> str:
    return f"Acquisition policies: {_names(p['name'] for p in content['policies'])}."


def _objective(content: Content) -> str:
    several = len(content["policies"]) > 1
    what = "compare the costs of policies" if several else "estimate the cost of a policy"
    return (
        f"To {what} that decide which measurements to take before “{in_markdown(content['data']['label'])}” is predicted, as if "
        "they were deployed in the population of these records."
    )


def _rows(content: Content) -> str:
    data = content["data"]
    more = f" in {data['clusters']:,} clusters" if data["clusters"] else ""
    weights = "" if data["effective_rows"] is None else " Rows have weights that represent a population."
    return f"{data['rows']:,} rows{more} were evaluated; {percent(data['complete'])} of them are complete.{weights}"


def _clusters(content: Content) -> str:
    count = content["data"]["clusters"]
    return f"Rows belong to {count:,} clusters; standard errors allow for this." if count else ""


def _partial(content: Content) -> str:
    found = [g["group"] for g in content["data"]["groups"] if g["in_part"] is None or g["in_part"] > 0]
    return (
        f"Rows that have only some columns of {_names(found)} count as rows that do not have this group."
        if found
        else ""
    )


def _outcome(content: Content) -> str:
    data = content["data"]
    return (
        f"The label is “{in_markdown(data['label'])}” with the classes {_names(c['label'] for c in data['classes'])}."
    )


def _shares(content: Content) -> str:
    shares = [f"{in_markdown(c['label'])} {percent(c['share'])}" for c in content["data"]["classes"]]
    return f"Shares of the classes: {', '.join(shares)}."


def _groups(content: Content) -> str:
    said = [f"{in_markdown(g['group'])} ({in_markdown(', '.join(g['columns']))})" for g in content["data"]["groups"]]
    return f"Groups of columns that are measured together: {'; '.join(said)}."


def _prices(content: Content) -> str:
    said = [
        f"{in_markdown(g['group'])} {'free' if g['free'] else number(g['price'])}" for g in content["data"]["groups"]
    ]
    return f"Prices: {', '.join(said)}."


def _missing(content: Content) -> str:
    said = [f"{in_markdown(g['group'])} {percent(g['recorded'])}" for g in content["data"]["groups"]]
    return f"Share of rows that have each group: {', '.join(said)}."


def _labels(content: Content) -> str:
    count = content["data"]["labels_missing"]
    return "Every row has a label." if not count else f"{count:,} rows have no label; they were weighted, not dropped."


def _assumption(content: Content) -> str:
    found = content["assumption"]
    return f"{in_markdown(found['words'])} In code: `{found['name']}`."


def _tests(content: Content) -> str:
    check = content["assumption"]["check"]
    if not check["tests"]:
        return "The records cannot test this assumption."
    return (
        f"The records can test {len(check['tests'])} implications of the assumption; {len(check['findings'])} were rejected at "
        f"level {check['level']}. Tests cannot prove an assumption."
    )


def _training(content: Content) -> str:
    said = [in_markdown(d["text"]) for d in content["doubts"] if d["kind"] == "training rows"]
    return " ".join(said) or "No row of the evaluation is known to have trained the classifier or a policy."


def _estimator(content: Content) -> str:
    method = METHODS.get(content["estimator"].removesuffix("-gt"))
    does = "" if method is None else f" It {method.does}. It is right under {method.right_under}."
    return f"Estimator: `{content['estimator']}`.{does}"


def _intervals(content: Content) -> str:
    lines = [t for p in content["policies"] for t in p["table"] if t["estimator"] == content["estimator"]]
    methods = sorted({t["error_method"] for t in lines if t["error_method"]})
    level = f"{100 * content['confidence']:g} % confidence intervals"
    how = f"; method of the standard errors: {', '.join(methods)}" if methods else ""
    joint = (
        " Differences of policies are paired, and their intervals hold jointly." if len(content["policies"]) > 1 else ""
    )
    return f"{level}{how}.{joint}"


def _metrics(content: Content) -> str:
    names = [p["name"] for p in content["policies"]]
    lines = []
    for metric in content["behaviour"]["metrics"]:
        cells = [_metric_cell(cell) for cell in metric["cells"]]
        label = f" ({in_markdown(str(metric['label']))})" if metric["label"] not in (None, "") else ""
        lines.append(f"| {metric['metric']}{label} | {' | '.join(cells)} |")
    if not lines:
        return ""
    head = f"| metric | {' | '.join(in_markdown(name) for name in names)} |"
    return "\n".join([head, "| --- |" + " ---: |" * len(names), *lines])


def _metric_cell(cell: dict[str, Any] | None) -> str:
    if cell is None or cell.get("estimate") is None:
        return "–"
    low, high = cell["lower"], cell["upper"]
    ends = "" if low is None or high is None or low == high else f" ({percent(low)} to {percent(high)})"
    return f"{percent(cell['estimate'])}{ends}"


def _effective(content: Content) -> str:
    said = []
    for policy in content["policies"]:
        found = [t["ess"] for t in policy["table"] if t["estimator"] == content["estimator"] and t["ess"] is not None]
        if found:
            said.append(f"{in_markdown(policy['name'])} {cost(found[-1], 0)}")
    return f"Effective rows behind the estimates: {', '.join(said)}." if said else ""


def _ranking(content: Content) -> str:
    return content["answer"] if isinstance(content["answer"], str) else in_markdown(" ".join(content["answer"]))


def _doubts(content: Content) -> str:
    return " ".join(in_markdown(d["text"]) for d in content["doubts"])


def _support(content: Content) -> str:
    said = [in_markdown(text) for p in content["policies"] for text in p["warnings"]]
    return (
        " ".join(dict.fromkeys(said))
        or "Every set of groups that the policies want was recorded often enough in similar rows."
    )


def _subgroups(content: Content) -> str:
    names = list(dict.fromkeys(level for p in content["policies"] for level in p["subgroups"]))
    return f"Estimates were also made for the subgroups {_names(names)}." if names else ""


def _rules(content: Content) -> str:
    return "\n\n".join(
        f"Rules of “{in_markdown(p['name'])}”:\n\n```text\n{p['rules']}\n```" for p in content["policies"] if p["rules"]
    )


def _acquires(content: Content) -> str:
    groups = [e["group"] for e in content["behaviour"]["events"] if e["group"] is not None and not e["never"]]
    return f"The policies order {_names(groups)}." if groups else "No policy orders a measurement."


def _software(content: Content) -> str:
    details = content["details"]
    names = [name for name in ("afape", "python", "numpy", "scipy", "pandas", "scikit-learn") if name in details]
    return f"Software: {', '.join(f'{name} {details[name]}' for name in names)}; seed {details.get('seed', 'unknown')}."


def _checksum(content: Content) -> str:
    found = content["details"].get("checksum of these rows", "")
    return f"Checksum of the evaluated rows: `{found}`." if found else ""


def _classifier(content: Content) -> str:
    said = content["details"].get("classifier") or content["policies"][0]["classifier"]
    return f"Classifier: {in_markdown(str(said)).rstrip('.')}."


def _always(text: str) -> Callable[[Content], str]:
    return lambda content: text


_FACTS: dict[str, Callable[[Content], str]] = {
    "policies": _policies,
    "objective": _objective,
    "rows": _rows,
    "clusters": _clusters,
    "partial": _partial,
    "outcome": _outcome,
    "shares": _shares,
    "groups": _groups,
    "prices": _prices,
    "missing": _missing,
    "labels": _labels,
    "assumption": _assumption,
    "tests": _tests,
    "training": _training,
    "estimator": _estimator,
    "intervals": _intervals,
    "metrics": _metrics,
    "effective": _effective,
    "ranking": _ranking,
    "doubts": _doubts,
    "support": _support,
    "subgroups": _subgroups,
    "rules": _rules,
    "acquires": _acquires,
    "software": _software,
    "checksum": _checksum,
    "classifier": _classifier,
    "static": _always("The evaluation assumes that measuring changes neither the values nor the label."),
    "retrospective": _always("The evaluation is retrospective: the policies were not used when the records were made."),
    "crossfit": _always(
        "Models of recording and of costs were fitted on other rows than those they are used on, unless an option says otherwise."
    ),
    "estimand": _always(
        "The cost of a run is the sum of the prices of the acquired groups and the cost of a wrong prediction. Its expected "
        "value in deployment was estimated; sensitivity, specificity and predictive values follow from the same estimates."
    ),
    "runs": _always("The classifier predicts from the values that a run has acquired, and from nothing else."),
    "output": _always("The classifier gives one label where a run stops."),
    "blind": _always("Policies and classifier saw only acquired values, never the label."),
    "always": _always("Every run ends with a predicted label, so no result of the index test is indeterminate."),
    "standing": _always("The evaluation assumes: " + " ".join(STANDING_ASSUMPTIONS)),
}
