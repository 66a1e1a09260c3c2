"""Problem, records, policy and classifier from the objects of an AFABench evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from .._arguments import as_float, check_choice, check_list, is_number, shown
from .._arrays import Bools, Floats, Ints
from ..data.problem import Problem
from ..data.retrospective import Retrospective
from .afabench import BenchPolicy, from_afabench
from .afabench_calls import name_of, torch_of
from .afabench_classifier import BenchClassifier, classifier_from_afabench
from .afabench_episodes import episodes

__all__ = ["BenchBundle", "from_afabench_bundle"]


@dataclass(frozen=True, eq=False)
class BenchBundle:
    """Objects of an AFABench evaluation, made for `afape.evaluate`.

    Attributes
    ----------
    problem : Problem
        One group per selection, with its price; labels in the order of the scores.
    data : Retrospective
        The rows of the dataset.
    policy : BenchPolicy
        The method.
    classifier : BenchClassifier
        The separate classifier, or that of the method if there is none.
    builtin : BenchClassifier or None
        The classifier of the method, if it has one.
    """

    problem: Problem
    data: Retrospective
    policy: BenchPolicy
    classifier: BenchClassifier
    builtin: BenchClassifier | None

    def episodes(
        self,
        hard_budget: float | None = None,
        random_state: int | None = 0,
        path: str | Path | None = None,
    ) -> pd.DataFrame:
        """Run the method once on every row, and return the columns of AFABench's CSV files.

        One line per row and step. The rows must be complete. Use `afape.evaluate` for records with gaps.

        Parameters
        ----------
        hard_budget : float, optional
            Largest sum of prices; a selection beyond it stops the run (``forced_stop``).
        random_state : int or None
            Seed of the draws, if the policy has probabilities; also the column ``eval_seed``.
        path : str or Path, optional
            CSV file to write, with ``null`` where there is no value.
        """
        external = None if self.classifier is self.builtin else self.classifier
        return episodes(self.data, self.policy, self.builtin, external, hard_budget, random_state, path)


def from_afabench_bundle(
    method: Any,
    dataset: Any,
    classifier: Any = None,
    *,
    misclassification_cost: ArrayLike = 1.0,
    unmasker: Any = None,
    initial: Any = None,
    free: str = "done",
    prices: Sequence[float] | None = None,
    classes: Sequence[Any] | None = None,
    recorded: Any = None,
    output_kind: str | None = None,
    **options: Any,
) -> BenchBundle:
    """Make problem, records, policy and classifier from the objects of an AFABench evaluation.

    AFABench itself is not imported: the objects only need the methods of its protocols.

    Parameters
    ----------
    method
        The method, see `from_afabench`.
    dataset
        Has ``get_all_data()``, features and labels (numbers, or one column per class), and may have
        ``get_feature_acquisition_costs()`` and ``feature_names``.
    classifier
        A separate classifier, see `classifier_from_afabench`. Default: ``predict`` of the method.
    misclassification_cost : float or array-like
        As in `Problem`; AFABench has none. With 1, the misclassification cost is one minus the accuracy.
    unmasker
        Has ``get_n_selections``, ``unmask`` and ``get_selection_costs``. Default: every selection is one feature.
    initial : sequence of int, or initializer, optional
        Features that are known from the start: their numbers, or an object with ``initialize``, which must choose the
        same features in every row. Default: none.
    free : {"done", "again"}
        "done": a selection that is known from the start is free and done. "again", as in AFABench: it is free, but shown as
        open. If the method selects it, it pays its price and learns nothing new.
    prices : sequence of float, optional
        Price of each selection. Default: the costs of the dataset and the unmasker; without costs, 1 each.
    classes : sequence of labels, optional
        Name of each class, in the order of scores and one-hot labels. Default: 0, 1, ....
    recorded : array-like of bool, optional
        False where a feature is missing in a row, with the shape of the features. Default: features that are not NaN.
    output_kind : str, optional
        As in `classifier_from_afabench`.
    **options
        ``repeated``, ``n_draws``, ``probabilities``, ``cost_param`` and ``device`` of `from_afabench`.

    Returns
    -------
    BenchBundle
    """
    check_choice("free", free, ("done", "again"))
    features, labels, shape = _rows_of(dataset)
    if recorded is not None:
        features = np.where(_mask(recorded, features.shape), features, np.nan)
    names = _names(dataset, features.shape[1])
    held = _features_of_selections(unmasker, shape)
    known = _known(initial, features, labels, shape, held)
    paid = _prices(prices, dataset, unmasker, shape, len(held))
    groups, costs, selections = _groups(names, held, known, paid, free)
    classes = list(range(_n_classes(dataset, labels))) if classes is None else check_list("classes", classes, "labels")
    if labels.max(initial=0) >= len(classes):
        raise ValueError(f"'classes' must name {int(labels.max()) + 1} classes or more, but names {len(classes)}.")
    problem = Problem(groups, costs, "label", misclassification_cost, classes)
    columns = {name: features[:, j] for j, name in enumerate(names)}
    columns |= {
        c: columns[c.removesuffix(_AGAIN)] for columns_ in groups.values() for c in columns_ if c.endswith(_AGAIN)
    }
    label = np.empty(len(labels), dtype=object)
    label[:] = [classes[k] for k in labels]
    data = Retrospective(pd.DataFrame(columns).assign(label=label), problem)
    policy = from_afabench(method, selections, features=names, feature_shape=shape, free="done", **options)
    judged: dict[str, Any] = {
        "classes": classes,
        "features": names,
        "feature_shape": shape,
        "device": options.get("device"),
    }
    has = getattr(method, "has_builtin_classifier", True) and callable(getattr(method, "predict", None))
    builtin = classifier_from_afabench(method, data, **judged, output_kind=output_kind) if has else None
    if classifier is None and builtin is None:
        raise ValueError(f"'classifier' must be given, because {name_of(method)} has no classifier of its own.")
    external = builtin
    if classifier is not None:
        external = classifier_from_afabench(classifier, data, **judged, output_kind=output_kind)
    assert external is not None
    return BenchBundle(problem, data, policy, external, builtin)


_AGAIN = " again"


def _array(thing: Any) -> NDArray[Any]:
    return np.asarray(thing.detach().cpu() if hasattr(thing, "detach") else thing)


def _rows_of(dataset: Any) -> tuple[Floats, Ints, tuple[int, ...]]:
    """Return features (n, d), label codes (n,) and the shape of the features of one row."""
    if isinstance(dataset, type) or not callable(getattr(dataset, "get_all_data", None)):
        raise TypeError(f"'dataset' must be an object with get_all_data(), as in AFABench, but is {shown(dataset)}.")
    features, labels = map(_array, dataset.get_all_data())
    if features.ndim < 2 or len(features) != len(labels) or labels.ndim not in (1, 2):
        raise ValueError(
            f"'dataset' must give features (n, ...) and labels (n,) or (n, K), but gives {features.shape} and {labels.shape}."
        )
    codes = labels.argmax(axis=1) if labels.ndim == 2 else labels
    if (codes != codes.astype(np.intp)).any() or (codes < 0).any():
        raise ValueError("'dataset' must give labels 0, 1, ..., or one column per class, but gives other numbers.")
    shape = tuple(int(n) for n in features.shape[1:])
    return features.reshape(len(features), -1).astype(float), codes.astype(np.intp), shape


def _n_classes(dataset: Any, labels: Ints) -> int:
    given = _array(dataset.get_all_data()[1])
    return int(given.shape[1]) if given.ndim == 2 else max(int(labels.max(initial=0)) + 1, 2)


def _mask(recorded: Any, shape: tuple[int, ...]) -> Bools:
    try:
        found = _array(recorded)
    except Exception:  # numpy calls the user's objects
        found = np.array(None)
    if found.dtype.kind != "b" or found.size != np.prod(shape) or found.shape[0] != shape[0]:
        raise ValueError(
            f"'recorded' must hold True or False for each feature of each row, {shape}, but is {found.dtype} of {found.shape}."
        )
    return found.reshape(shape)


def _names(dataset: Any, d: int) -> list[str]:
    given = getattr(dataset, "feature_names", None)
    names = [f"x{j}" for j in range(d)] if given is None else [str(name) for name in given]
    if len(names) != d or len(set(names)) < d or any(name.endswith(_AGAIN) or name == "label" for name in names):
        raise ValueError(
            f"'dataset' must have {d} different feature_names, none of them 'label', but they are {shown(names)}."
        )
    return names


def _features_of_selections(unmasker: Any, shape: tuple[int, ...]) -> list[Ints]:
    """Return the features that each selection reveals; raise an error if two reveal the same, or none reveals one."""
    d = int(np.prod(shape))
    if unmasker is None:
        return [np.array([j]) for j in range(d)]
    torch = torch_of()
    if not callable(getattr(unmasker, "unmask", None)):
        raise TypeError(f"'unmasker' must have a method unmask, as in AFABench, but is {shown(unmasker)}.")
    n = int(unmasker.get_n_selections(torch.Size(shape)))
    nothing = torch.zeros((n, *shape))
    shown_after = unmasker.unmask(
        masked_features=nothing,
        feature_mask=nothing.bool(),
        features=nothing,
        afa_selection=torch.arange(n)[:, None],
        selection_mask=torch.zeros((n, n), dtype=torch.bool),
        label=None,
        feature_shape=torch.Size(shape),
    )
    revealed = _array(shown_after).reshape(n, d).astype(bool)
    count = revealed.sum(axis=0)
    if (count != 1).any():
        j = int(np.flatnonzero(count != 1)[0])
        raise ValueError(
            f"'unmasker' must reveal each feature by one selection, but feature {j} is revealed by {int(count[j])} of {n}. "
            "Groups of columns cannot overlap."
        )
    return [np.flatnonzero(line) for line in revealed]


def _known(initial: Any, features: Floats, labels: Ints, shape: tuple[int, ...], held: list[Ints]) -> Bools:
    """Return True for selections whose features are known from the start, (n_selections,)."""
    d = features.shape[1]
    mask = np.zeros(d, dtype=bool)
    if callable(getattr(initial, "initialize", None)):
        torch = torch_of()
        x = torch.as_tensor(features, dtype=torch.float32).reshape(len(features), *shape)
        one_hot = torch.nn.functional.one_hot(torch.as_tensor(labels), max(int(labels.max(initial=0)) + 1, 2)).float()
        masks = _array(initial.initialize(features=x, label=one_hot, feature_shape=torch.Size(shape)))
        masks = masks.reshape(len(features), d).astype(bool)
        if (masks != masks[:1]).any():
            raise ValueError(
                f"'initial' must choose the same features in every row, but {name_of(initial)} does not. Free groups are the "
                "same for all rows."
            )
        mask = masks[0]
    elif initial is not None:
        chosen = check_list("initial", initial, "numbers of features")
        if any(isinstance(j, bool) or not isinstance(j, int | np.integer) or not 0 <= j < d for j in chosen):
            raise ValueError(f"'initial' must hold numbers of features from 0 to {d - 1}, but is {shown(chosen)}.")
        mask[chosen] = True
    partly = [k for k, own in enumerate(held) if mask[own].any() and not mask[own].all()]
    if partly:
        raise ValueError(
            f"'initial' must hold all features of a selection or none, but holds some of selection {partly[0]}."
        )
    return np.array([bool(mask[own].all()) for own in held])


def _prices(prices: Any, dataset: Any, unmasker: Any, shape: tuple[int, ...], n: int) -> list[float]:
    if prices is not None:
        listed = check_list("prices", prices, "prices, one per selection")
        found = np.array([as_float(price) if is_number(price) else np.nan for price in listed])
    else:
        each: Any = torch_of().ones(shape)
        if callable(getattr(dataset, "get_feature_acquisition_costs", None)):
            each = dataset.get_feature_acquisition_costs()
        if callable(getattr(unmasker, "get_selection_costs", None)):
            each = unmasker.get_selection_costs(each)
        found = _array(each).astype(float).ravel()
        found = np.array([float(f"{price:.7g}") for price in found])  # single precision: 0.1, not 0.10000000149
    given = found.tolist() if prices is None else prices
    if len(found) != n or not (found > 0).all() or not np.isfinite(found).all():
        raise ValueError(
            f"'prices' must have one number above 0 per selection, {n}, but are {shown(given)}. What costs nothing "
            "is known from the start here: name it in 'initial'."
        )
    return [float(price) for price in found]


def _groups(
    names: list[str], held: list[Ints], known: Bools, prices: list[float], free: str
) -> tuple[dict[str, list[str]], dict[str, float], list[str]]:
    """Return columns and prices of the groups, and the group of each selection.

    With ``free="again"``, a selection that is known from the start has two groups: one that is free, and one with a copy of
    its columns, which the method can pay for.
    """
    groups: dict[str, list[str]] = {}
    costs: dict[str, float] = {}
    selections: list[str] = []
    for k, own in enumerate(held):
        columns = [names[j] for j in own]
        name = columns[0] if len(columns) == 1 else f"selection {k}"
        groups[name] = columns
        if known[k] and free == "again":
            name += _AGAIN
            groups[name] = [column + _AGAIN for column in columns]
        if not known[k] or free == "again":
            costs[name] = prices[k]
        selections.append(name)
    return groups, costs, selections
