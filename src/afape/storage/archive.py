"""Bytes of one stored thing, and back."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import sklearn
from sklearn.base import BaseEstimator

from ..agents.state import AgentState
from .kinds import is_storable, rebuilt, state_of
from .refusal import StorageError
from .trees import CHECKED_TYPES, check_trees

__all__ = ["FORMAT", "Reader", "packed"]

FORMAT = 1  # raised when a file of an older afape can no longer be read
_EPOCH = (1980, 1, 1, 0, 0, 0)  # no clock in the file


def packed(thing: Any, problem: Any, unsafe: bool) -> bytes:
    """One thing as the bytes of a zip; things inside it become zips inside the zip."""
    if is_storable(thing):
        state, kind = state_of(thing), type(thing).__name__
    elif unsafe:
        state, kind = AgentState({}, models={"pickle": thing}), "pickle"
    else:
        raise StorageError(
            f"'thing' must be storable, but {type(thing).__name__} cannot be stored without running code when it is loaded. "
            "Storable are the public agents of afape.agents, Guideline (for rules as text) and ImputedClassifier. Pass "
            "unsafe=True to pickle it."
        )
    parts, models = {}, {}
    for i, (name, array) in enumerate(state.arrays.items()):
        parts[f"arrays/{i}.npy"] = _array_bytes(name, array)
    for i, (name, model) in enumerate(state.models.items()):
        suffix, content = ("pickle", _pickled(model)) if kind == "pickle" else _model_bytes(model, problem, unsafe)
        models[name] = f"models/{i}.{suffix}"
        parts[models[name]] = content
    manifest = {
        "format": "afape",
        "format_version": FORMAT,
        "afape": import_module("afape").__version__,
        "kind": kind,
        "problem": problem,
        "scikit_learn": sklearn.__version__,
        "settings": state.settings,
        "arrays": list(state.arrays),
        "models": models,
    }
    try:
        parts = {"manifest.json": json.dumps(manifest, indent=1, allow_nan=False, default=_plain).encode(), **parts}
    except (TypeError, ValueError) as error:
        raise StorageError(f"The settings of {kind} are no plain numbers, text, lists and dicts: {error}.") from error
    return _zipped(parts)


def _plain(value: Any) -> Any:
    """A number of numpy as JSON holds it."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not plain")


def _zipped(parts: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _array_bytes(name: str, array: Any) -> bytes:
    array = np.asarray(array)
    if array.dtype.hasobject:
        raise StorageError(f"The array {name!r} holds Python objects; only numbers, text and truth values are stored.")
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _model_bytes(model: Any, problem: Any, unsafe: bool) -> tuple[str, bytes]:
    if is_storable(model):
        return "afape", packed(model, problem, unsafe)
    if isinstance(model, BaseEstimator):  # types beyond scikit-learn's have to be trusted by name when loading
        return "skops", bytes(_skops().dumps(model))
    if unsafe:
        return "pickle", _pickled(model)
    raise StorageError(
        f"{type(model).__name__} inside cannot be stored without running code when it is loaded. Use a scikit-learn model or "
        "afape.ImputedClassifier, or pass unsafe=True to pickle it."
    )


def _pickled(thing: Any) -> bytes:
    try:
        return pickle.dumps(thing)
    except Exception as error:
        raise StorageError(
            f"{type(thing).__name__} cannot be pickled either: {error}. A rule can be written as an afape.agents.Guideline."
        ) from error


@dataclass(frozen=True, eq=False)
class Reader:
    """A file, its manifest checked, before anything in it is built."""

    archive: zipfile.ZipFile
    manifest: dict[str, Any]
    trusted: Sequence[str]
    check_versions: bool
    unsafe: bool

    @staticmethod
    def opened(content: bytes, trusted: Sequence[str], check_versions: bool, unsafe: bool) -> Reader:
        """Read the manifest and refuse what does not fit."""
        archive = zipfile.ZipFile(io.BytesIO(content))
        manifest = json.loads(archive.read("manifest.json"))
        if not isinstance(manifest, dict) or manifest.get("format") != "afape":
            raise StorageError("The file has a manifest, but not one that afape wrote.")
        if manifest.get("format_version") != FORMAT:
            raise StorageError(
                f"The file has format version {manifest.get('format_version')}, written by afape "
                f"{manifest.get('afape')}; this afape reads version {FORMAT}. Save it again with this version, or load it "
                "with the one that wrote it."
            )
        models = manifest["models"].values()
        if check_versions and any(not name.endswith(".afape") for name in models):
            _check_sklearn(manifest["scikit_learn"])
        if not unsafe and any(name.endswith(".pickle") for name in models):
            raise StorageError(
                "The file holds a pickle, which can run any code when it is loaded. If you trust where it comes from, pass "
                "unsafe=True."
            )
        return Reader(archive, manifest, trusted, check_versions, unsafe)

    def thing(self) -> Any:
        """Build what the file holds."""
        names = self.manifest["arrays"]
        arrays = {name: self._array(f"arrays/{i}.npy") for i, name in enumerate(names)}
        models = {name: self._model(place) for name, place in self.manifest["models"].items()}
        if self.manifest["kind"] == "pickle":
            return models["pickle"]
        return rebuilt(self.manifest["kind"], AgentState(self.manifest["settings"], arrays, models))

    def _array(self, place: str) -> Any:
        return np.load(io.BytesIO(self.archive.read(place)), allow_pickle=False)

    def _model(self, place: str) -> Any:
        content = self.archive.read(place)
        if place.endswith(".afape"):
            return Reader.opened(content, self.trusted, self.check_versions, self.unsafe).thing()
        if place.endswith(".pickle"):
            return pickle.loads(content)
        asked = _skops().get_untrusted_types(data=content)
        allowed = [name for name in asked if name in self.trusted or name in CHECKED_TYPES]
        refused = [name for name in asked if name not in allowed]
        if refused:
            raise StorageError(
                f"The model in the file has types that are not known to be safe: {refused}. If you trust them, pass "
                f"trusted={refused!r}."
            )
        model = _skops().loads(content, trusted=allowed)
        check_trees(model)
        return model


def _check_sklearn(version: str) -> None:
    here = sklearn.__version__
    if version.split(".")[:2] != here.split(".")[:2]:
        raise StorageError(
            f"The file was saved with scikit-learn {version}, here is {here}. Install that version, save it again, or pass "
            "check_versions=False if you know that the models inside still mean the same."
        )


def _skops() -> Any:
    import skops.io

    return skops.io
