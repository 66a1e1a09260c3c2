"""Conversion of agents and classifiers to the bytes of a zip, and back."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn
from sklearn.base import BaseEstimator

from .. import __version__
from ..agents.state import AgentState
from .errors import StorageError
from .kinds import is_storable, rebuilt, state_of
from .limits import Allowance, checked_array
from .stored_models import check_content
from .stored_trees import check_trees

__all__ = ["FORMAT", "Reader", "array_bytes", "packed", "zipped"]

FORMAT = 1  # increased when files of older versions can no longer be read
_EPOCH = (1980, 1, 1, 0, 0, 0)  # a fixed date, so that equal objects give equal files


def packed(thing: Any, problem: Any, unsafe: bool) -> bytes:
    """Return the bytes of a zip that holds this object; agents and classifiers inside it become inner zips."""
    if is_storable(thing):
        state, kind = state_of(thing), type(thing).__name__
    elif unsafe:
        state, kind = AgentState({}, models={"pickle": thing}), "pickle"
    else:
        raise StorageError(
            f"'thing' must be a public agent of afape.agents (a Guideline for rules as text) or an ImputedClassifier, but is "
            f"{type(thing).__name__}, which cannot be saved without running code when it is loaded. Pass unsafe=True to pickle "
            "it."
        )
    entries, models = {}, {}
    for i, (name, array) in enumerate(state.arrays.items()):
        entries[f"arrays/{i}.npy"] = array_bytes(name, array)
    for i, (name, model) in enumerate(state.models.items()):
        suffix, content = ("pickle", _pickled(model)) if kind == "pickle" else _model_bytes(model, problem, unsafe)
        models[name] = f"models/{i}.{suffix}"
        entries[models[name]] = content
    manifest = {
        "format": "afape",
        "format_version": FORMAT,
        "afape": __version__,
        "kind": kind,
        "problem": problem,
        "scikit_learn": sklearn.__version__,
        "settings": state.settings,
        "arrays": list(state.arrays),
        "models": models,
    }
    try:
        text = json.dumps(manifest, indent=1, allow_nan=False, default=_plain)
    except (TypeError, ValueError) as error:
        raise StorageError(
            f"The settings of {kind} must be finite numbers, text, lists and dicts, but are not: {error}."
        ) from error
    return zipped({"manifest.json": text.encode(), **entries})


def _plain(value: Any) -> Any:
    """Convert numpy numbers for JSON."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def zipped(entries: dict[str, bytes]) -> bytes:
    """Return the bytes of a zip with these entries."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def array_bytes(name: str, array: Any) -> bytes:
    """Return an array of numbers, text or booleans as the bytes of an ``.npy`` file."""
    array = np.asarray(array)
    if array.dtype.hasobject:
        raise StorageError(f"The array {name!r} holds Python objects; only numbers, text and booleans can be saved.")
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _model_bytes(model: Any, problem: Any, unsafe: bool) -> tuple[str, bytes]:
    if is_storable(model):
        return "afape", packed(model, problem, unsafe)
    if isinstance(model, BaseEstimator):  # when loading, other types than scikit-learn's must be in 'trusted'
        return "skops", bytes(_skops().dumps(model))
    if unsafe:
        return "pickle", _pickled(model)
    raise StorageError(
        f"'thing' contains {type(model).__name__}, which cannot be saved without running code when it is loaded. Use a "
        "scikit-learn model or afape.ImputedClassifier, or pass unsafe=True to pickle it."
    )


def _pickled(thing: Any) -> bytes:
    try:
        return pickle.dumps(thing)
    except Exception as error:
        raise StorageError(
            f"{type(thing).__name__} cannot be pickled: {error}. A rule can be written as an afape.agents.Guideline."
        ) from error


@dataclass(frozen=True, eq=False)
class Reader:
    """An open file whose manifest is checked."""

    archive: zipfile.ZipFile
    manifest: dict[str, Any]
    trusted: Sequence[str]
    check_versions: bool
    unsafe: bool
    allowance: Allowance

    @staticmethod
    def opened(
        content: bytes, trusted: Sequence[str], check_versions: bool, unsafe: bool, allowance: Allowance | None = None
    ) -> Reader:
        """Read and check the manifest; ``allowance`` is that of the file around this one."""
        allowance = Allowance(len(content)) if allowance is None else allowance
        archive = zipfile.ZipFile(io.BytesIO(content)) if unsafe else allowance.open(content)
        manifest = json.loads(archive.read("manifest.json"))
        if not isinstance(manifest, dict) or manifest.get("format") != "afape":
            raise StorageError("The file has a manifest, but it was not written by afape.")
        if manifest.get("format_version") != FORMAT:
            raise StorageError(
                f"The file has format version {manifest.get('format_version')}, written by afape "
                f"{manifest.get('afape')}; this afape reads version {FORMAT}. Load it with the version that wrote it, or save "
                "it again with this version."
            )
        models = manifest["models"].values()
        if check_versions and any(not name.endswith(".afape") for name in models):
            _check_sklearn(manifest["scikit_learn"])
        if not unsafe and any(name.endswith(".pickle") for name in models):
            raise StorageError(
                "The file contains a pickle, which can run any code when it is loaded. If you trust its source, pass "
                "unsafe=True."
            )
        return Reader(archive, manifest, trusted, check_versions, unsafe, allowance)

    def thing(self) -> Any:
        """Build the agent or classifier."""
        names = self.manifest["arrays"]
        arrays = {name: self._array(f"arrays/{i}.npy") for i, name in enumerate(names)}
        models = {name: self._model(place) for name, place in self.manifest["models"].items()}
        if self.manifest["kind"] == "pickle":
            return models["pickle"]
        return rebuilt(self.manifest["kind"], AgentState(self.manifest["settings"], arrays, models))

    def _array(self, place: str) -> Any:
        return checked_array(self.archive.read(place))

    def _model(self, place: str) -> Any:
        content = self.archive.read(place)
        if place.endswith(".afape"):
            return Reader.opened(content, self.trusted, self.check_versions, self.unsafe, self.allowance).thing()
        if place.endswith(".pickle"):
            return pickle.loads(content)
        if not self.unsafe:
            check_content(self.allowance.open(content), self.trusted)
        model = _skops().loads(content, trusted=_skops().get_untrusted_types(data=content))
        check_trees(model)
        return model


def _check_sklearn(version: str) -> None:
    here = sklearn.__version__
    if version.split(".")[:2] != here.split(".")[:2]:
        raise StorageError(
            f"The file was saved with scikit-learn {version}, but {here} is installed. Install that version, save the file "
            "again, or pass check_versions=False if you know that the models still behave in the same way."
        )


def _skops() -> Any:
    import skops.io

    return skops.io
