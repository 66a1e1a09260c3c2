"""The types that can be saved: the public agents of afape, and ImputedClassifier."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import agents
from ..agents.state import AgentState
from ..classifiers import ImputedClassifier
from ..classifiers.training_rows import TrainingRows
from .errors import StorageError

__all__ = ["is_storable", "rebuilt", "state_of", "try_out"]

_SOURCE, _POSITIONS, _FINGERPRINTS = "training_source", "training_positions", "training_fingerprints"
_AGENTS = {name: getattr(agents, name) for name in agents.__all__ if hasattr(getattr(agents, name), "from_state")}


def state_of(thing: Any) -> AgentState:
    """Return the content of an agent or classifier."""
    state: AgentState = _classifier_state(thing) if isinstance(thing, ImputedClassifier) else thing.state()
    rows = getattr(thing, "rows_", None)
    if rows is None:
        return state
    arrays = {**state.arrays, _POSITIONS: rows.positions, _FINGERPRINTS: rows.fingerprints}
    return replace(state, settings={**state.settings, _SOURCE: rows.source}, arrays=arrays)


def is_storable(thing: Any) -> bool:
    """Return True if this is a public agent of afape or an ImputedClassifier, not a subclass of them."""
    return type(thing) is ImputedClassifier or type(thing) is _AGENTS.get(type(thing).__name__)


def rebuilt(kind: str, state: AgentState) -> Any:
    """Build an object of this type from its content. Only public agents and ImputedClassifier are allowed."""
    if kind != "ImputedClassifier" and kind not in _AGENTS:
        raise StorageError(f"The file contains a {kind!r}, which is not an agent of this version of afape.")
    thing = _classifier_from(state) if kind == "ImputedClassifier" else _AGENTS[kind].from_state(state)
    if _SOURCE in state.settings:
        positions = np.asarray(state.arrays[_POSITIONS], dtype=np.intp)
        thing.rows_ = TrainingRows(
            state.settings[_SOURCE], positions, np.asarray(state.arrays[_FINGERPRINTS], np.uint64)
        )
    return thing


def try_out(thing: Any) -> None:
    """Ask an agent or classifier about two states, so that arrays that do not fit together are found when a file is loaded."""
    layout = getattr(thing, "layout_", None)
    columns, groups = getattr(thing, "columns_", None), getattr(thing, "group_names_", getattr(thing, "groups_", None))
    if layout is not None:
        columns, groups = layout.columns, layout.groups
    if columns is None or groups is None:
        return  # a policy without arrays
    acquired = np.array([[False], [True]]).repeat(len(groups), axis=1)
    values = np.where([[False], [True]], 0.0, np.full((2, len(columns)), np.nan))
    for method in ("probabilities", "predict"):
        if hasattr(thing, method):
            answer = np.asarray(getattr(thing, method)(values, acquired))
            if answer.shape != ((2, len(groups) + 1) if method == "probabilities" else (2,)):
                raise StorageError("The file is damaged or forged: its arrays do not fit together.")


def _classifier_state(classifier: ImputedClassifier) -> AgentState:
    if not hasattr(classifier, "estimator_"):
        raise StorageError("This ImputedClassifier is not fitted yet; call fit(training_data) before saving it.")
    settings = {
        "drop_probability": np.asarray(classifier.drop_probability).tolist(),
        "random_state": classifier.random_state,
        "decide": classifier.decide,
        "calibrate": classifier.calibrate,
        "impute": classifier.impute,
        "decides_by": classifier.decide_,
        "groups": [[name, list(columns)] for name, columns in classifier.groups_.items()],
        "columns": list(classifier.columns_),
        "classes": _labels_to_json(classifier.classes_),
        "label_classes": _labels_to_json(classifier.label_classes_),
    }
    arrays: dict[str, Any] = {
        "means": classifier.means_,
        "costs": classifier.costs_,
        "column_group": classifier.column_group_,
    }
    models = {"fitted": classifier.estimator_}
    if classifier.estimator is not None:
        models["estimator"] = classifier.estimator
    return AgentState(settings, arrays, models)


def _classifier_from(state: AgentState) -> ImputedClassifier:
    plain, arrays = state.settings, state.arrays
    names = ("drop_probability", "random_state", "decide", "calibrate", "impute")
    new = ImputedClassifier(state.models.get("estimator"), **{name: plain[name] for name in names if name in plain})
    new.decide_ = plain["decides_by"]
    new.estimator_, new.means_ = state.models["fitted"], arrays["means"]
    new.groups_ = {name: tuple(columns) for name, columns in plain["groups"]}
    new.costs_ = arrays["costs"]
    new.column_group_, new.columns_ = np.asarray(arrays["column_group"], dtype=np.intp), tuple(plain["columns"])
    new.classes_, new.label_classes_ = _labels_from(plain["classes"]), _labels_from(plain["label_classes"])
    return new


def _labels_to_json(labels: NDArray[Any]) -> dict[str, Any]:
    return {"dtype": labels.dtype.str, "values": labels.tolist()}


def _labels_from(plain: dict[str, Any]) -> NDArray[Any]:
    if plain["dtype"] == "|O":
        out = np.empty(len(plain["values"]), dtype=object)
        out[:] = plain["values"]
        return out
    return np.array(plain["values"], dtype=plain["dtype"])
