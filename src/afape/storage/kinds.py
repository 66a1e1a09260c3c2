"""What can be stored: public agents of afape, its classifier, and scikit-learn models inside them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..agents.state import AgentState
from ..classifiers import ImputedClassifier
from .refusal import StorageError

__all__ = ["is_storable", "rebuilt", "state_of"]


def state_of(thing: Any) -> AgentState:
    """What the thing is made of."""
    if isinstance(thing, ImputedClassifier):
        return _classifier_state(thing)
    return thing.state()  # type: ignore[no-any-return]


def is_storable(thing: Any) -> bool:
    """Whether it is one of afape's own, by the list of public names."""
    return type(thing) is ImputedClassifier or type(thing) is _agent_class(type(thing).__name__)


def rebuilt(kind: str, state: AgentState) -> Any:
    """The thing of this kind; only names that afape publishes are looked up."""
    if kind == "ImputedClassifier":
        return _classifier_from(state)
    found = _agent_class(kind)
    if found is None:
        raise StorageError(f"The file holds a {kind!r}, which this version of afape does not know as an agent.")
    return found.from_state(state)


def _agent_class(name: str) -> Any:
    """The public agent of this name that can be taken apart and put together, or None."""
    agents = import_module("afape.agents")
    found = getattr(agents, name) if name in agents.__all__ else None
    return found if hasattr(found, "from_state") else None


def _classifier_state(classifier: ImputedClassifier) -> AgentState:
    if not hasattr(classifier, "estimator_"):
        raise StorageError("This ImputedClassifier is not fitted yet; call fit(training_data) before you save it.")
    settings = {
        "drop_probability": classifier.drop_probability,
        "random_state": classifier.random_state,
        "columns": list(classifier.columns_),
        "classes": _labels_to_json(classifier.classes_),
        "label_classes": _labels_to_json(classifier.label_classes_),
        "source": classifier._source,
    }
    arrays: dict[str, Any] = {
        "means": classifier.means_,
        "column_group": classifier.column_group_,
        "positions": classifier._positions,
        "fingerprints": classifier._fingerprints,
    }
    models = {"fitted": classifier.estimator_}
    if classifier.estimator is not None:
        models["estimator"] = classifier.estimator
    return AgentState(settings, arrays, models)


def _classifier_from(state: AgentState) -> ImputedClassifier:
    plain, arrays = state.settings, state.arrays
    new = ImputedClassifier(state.models.get("estimator"), plain["drop_probability"], plain["random_state"])
    new.estimator_, new.means_ = state.models["fitted"], arrays["means"]
    new.column_group_, new.columns_ = np.asarray(arrays["column_group"], dtype=np.intp), tuple(plain["columns"])
    new.classes_, new.label_classes_ = _labels_from(plain["classes"]), _labels_from(plain["label_classes"])
    new._source, new._positions = plain["source"], np.asarray(arrays["positions"], dtype=np.intp)
    new._fingerprints = np.asarray(arrays["fingerprints"], dtype=np.uint64)
    return new


def _labels_to_json(labels: NDArray[Any]) -> dict[str, Any]:
    return {"dtype": labels.dtype.str, "values": labels.tolist()}


def _labels_from(plain: dict[str, Any]) -> NDArray[Any]:
    if plain["dtype"] == "|O":
        out = np.empty(len(plain["values"]), dtype=object)
        out[:] = plain["values"]
        return out
    return np.array(plain["values"], dtype=plain["dtype"])
